"""Sphinx's settings for the documentation site. `make site` copies this file beside the pages that it writes."""

import json
from html import escape
from importlib.metadata import version as version_of
from pathlib import Path

project = "llm-do"
version = release = version_of("llm-do")
extensions = ["myst_parser"]
myst_heading_anchors = 6
# Two dashes are an option of a command, not a dash.
smartquotes = False
# Signatures and shortened JSON are highlighted as far as they can be.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = f"llm-do {version}"
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"

TREE = json.loads((Path(__file__).parent / "navigation.json").read_text(encoding="utf-8"))
"""The pages of the navigation: title, name, the pages below, and what else counts as below it."""


def setup(app):
    """Give the theme the navigation before it asks: Sphinx's own copies the headings of all pages for each page."""
    app.connect("html-page-context", _add_navigation, priority=400)


def _add_navigation(app, pagename, _templatename, context, _doctree):
    context["toctree"] = lambda **_options: _entries(TREE, pagename, app.builder, 1)


def _entries(pages, here, builder, level):
    return f"<ul>{''.join(_entry(page, here, builder, level) for page in pages)}</ul>" if pages else ""


def _entry(page, here, builder, level):
    item = f"toctree-l{level}{' current' if _holds(page, here) else ''}"
    link = f"{'current ' if page['name'] == here else ''}reference internal"
    target = builder.get_relative_uri(here, page["name"]) or "#"
    below = _entries(page["pages"], here, builder, level + 1)
    return f'<li class="{item}"><a class="{link}" href="{target}">{escape(page["title"])}</a>{below}</li>'


def _holds(page, here):
    inside = bool(page["folder"]) and here.startswith(page["folder"])
    return page["name"] == here or inside or any(_holds(each, here) for each in page["pages"])

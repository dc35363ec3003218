"""`page_file`: the page with a run inside, as one HTML file that needs no server and asks none."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from llm_do.web.run_document import document_text

__all__ = ["FILE_SCRIPTS", "SERVER_SCRIPTS", "content_policy", "page_file", "page_text", "server_page"]

FILE_SCRIPTS = ("texts.js", "run.js", "tree.js", "detail.js", "page.js")
"""The scripts of the page in a file, in order."""

SERVER_SCRIPTS = (*FILE_SCRIPTS, "lists.js", "conversations.js", "server.js")
"""The scripts of the page of a server."""

_COMMENT_LINES = re.compile(r"^[ ]*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)


def page_file(document: dict[str, Any]) -> str:
    """Return the page of a run.

    Args:
        document: What `run_document` returned.

    Returns:
        The HTML. Its content security policy allows its own style and script only, each by its digest.
    """
    style, script = page_text("page.css"), script_text(FILE_SCRIPTS)
    policy = content_policy(script, style)
    data = f'<script type="application/json" id="document">{document_text(document)}</script>'
    return _filled(
        {
            "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            "style": f"<style>{style}</style>",
            "script": f"{data}\n<script>{script}</script>",
        }
    )


@cache
def server_page() -> tuple[str, str, str]:
    """Return the page of a server, which has no data in it, with its script and its style."""
    style, script = page_text("page.css") + page_text("server.css"), script_text(SERVER_SCRIPTS)
    filled = _filled({"policy": "", "style": f"<style>{style}</style>", "script": f"<script>{script}</script>"})
    return filled, script, style


def _filled(parts: dict[str, str]) -> str:
    page = page_text("page.html")
    for name, text in parts.items():
        before, _, after = page.partition(f"<!--{name}-->")
        page = before + text + after
    return page


def content_policy(script: str, style: str, *, connect: bool = False) -> str:
    """Return the content security policy of a page with one script and one style.

    Args:
        script: The script.
        style: The style.
        connect: Whether the page may ask its own server.
    """
    sources = [
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",
        *(["connect-src 'self'"] if connect else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(sources)


def script_text(names: tuple[str, ...]) -> str:
    """Return scripts as one, in a scope of its own."""
    return '"use strict";(()=>{\n' + "\n".join(map(page_text, names)) + "\n})();"


@cache
def page_text(name: str) -> str:
    """Return one of the page's files, a script without the lines that are only comments."""
    text = (files("llm_do.web") / "page" / name).read_text(encoding="utf-8")
    return _COMMENT_LINES.sub("", text) if name.endswith(".js") else text


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

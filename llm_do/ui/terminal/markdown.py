"""A model's complete text for a terminal: its Markdown drawn, where it is some, and sanitized in any case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from llm_do.text.sanitizer import sanitize
from llm_do.ui.terminal.folding import fold_lines

__all__ = ["is_data", "render_markdown"]

_MARKS = re.compile(
    r"^ {0,3}(#{1,6} |[-*+] |\d{1,3}[.)] |> |```|~~~|\|.*\|)|\*\*\S|`[^`\n]+`|(?<!\w)[*_]\w[^*_\n]*[*_](?!\w)|\]\(",
    re.MULTILINE,
)

_TAG_LINE = re.compile(r"^(.*\S)$(?=\n {0,3}<[A-Za-z/!?])|^( {0,3}<[A-Za-z/!?].*\S)$", re.MULTILINE)
"""A line with a tag, or in front of one, which isn't joined with the next: the text may be XML."""


def is_data(text: str) -> bool:
    """Whether a text is a JSON object or list, in which `*` and `_` mean nothing.

    Example:
        >>> is_data('{"a": "__init__.py"}'), is_data("[a](b)"), is_data("**bold**")
        (True, False, False)
    """
    shown = text.strip()
    if not shown.startswith(("{", "[")) or not shown.endswith(("}", "]")):
        return False
    try:
        json.loads(shown)
    except (ValueError, RecursionError):
        return False
    return True


def render_markdown(text: str, columns: int, *, color: bool = False) -> str:
    """Draw a text that a model wrote; JSON and HTML in it are shown as they are.

    Example:
        >>> render_markdown("plain", 80)
        'plain\\n'
    """
    shown = sanitize(text, lines=True)
    if not _MARKS.search(shown) or is_data(shown):
        folded = fold_lines(shown, columns, hang=0)
        return folded if folded.endswith("\n") else f"{folded}\n"
    import io

    from markdown_it import MarkdownIt
    from rich.console import Console, ConsoleOptions
    from rich.markdown import Heading, Markdown
    from rich.text import Text
    from rich.theme import Theme

    class Title(Heading):
        """A heading as a bold line, whatever its level."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
            self.text.stylize("bold")
            yield self.text

    class Document(Markdown):
        """Markdown with such headings."""

        elements: ClassVar[Any] = {**Markdown.elements, "heading_open": Title}

        def __init__(self, markup: str, **options: Any) -> None:
            super().__init__("", **options)
            parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
            self.markup, self.parsed = markup, parser.parse(_TAG_LINE.sub(r"\g<0>  ", markup))

    styles = {f"markdown.{name}": "none" for name in ("item.number", "item.bullet", "table.border", "hr")}
    styles |= {"markdown.block_quote": "none", "markdown.table.header": "bold"}
    styles |= {"markdown.code": "cyan", "markdown.link": "blue", "markdown.link_url": "blue"}
    screen = Console(
        file=io.StringIO(),
        width=max(columns - 1, 20),
        force_terminal=True,
        color_system="standard" if color else None,
        no_color=not color,
        legacy_windows=False,
        theme=Theme(styles),
        highlight=False,
        emoji=False,
        markup=False,
    )
    with screen.capture() as captured:
        screen.print(Document(shown, hyperlinks=False, code_theme="ansi_light"))
    lines = [line.rstrip() for line in captured.get().split("\n")]
    return "\n".join(lines).strip("\n") + "\n"

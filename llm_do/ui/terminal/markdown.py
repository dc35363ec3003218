"""A model's complete text for a terminal: its Markdown drawn, where it is some, and harmless in any case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from llm_do.text.sanitizer import sanitize
from llm_do.ui.terminal.folding import fold_lines

__all__ = ["render_markdown"]

_MARKS = re.compile(
    r"^ {0,3}(#{1,6} |[-*+] |\d{1,3}[.)] |> |```|~~~|\|.*\|)|\*\*\S|`[^`\n]+`|(?<!\w)[*_]\w[^*_\n]*[*_](?!\w)|\]\(",
    re.MULTILINE,
)
_HTML = re.compile(r"<[A-Za-z/!?]")


def render_markdown(text: str, columns: int, *, color: bool = False) -> str:
    """Draw a text.

    Example:
        >>> render_markdown("plain", 80)
        'plain\\n'
    """
    shown = sanitize(text, lines=True)
    if not _MARKS.search(shown) or _HTML.search(shown):
        folded = fold_lines(shown, columns, hang=0)
        return folded if folded.endswith("\n") else f"{folded}\n"
    import io

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

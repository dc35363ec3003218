"""Long lines for a narrow terminal: broken between words, where a terminal would break them anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_do.ui.terminal.text_width import text_width

__all__ = ["fold_lines"]

_COLOR = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b\s]*\x1b\\")
"""What has no width: colours, and where a link begins and ends."""

_LEAD = re.compile(rf"(?:{_COLOR.pattern}|[ │├└─])+")
"""Begins a line, and is never alone on it: blanks, and the branches of a tree."""

_BREAK = re.compile(r"(?<=\S)( +)(?=\S)(?!s(?:\W|$))")
"""Between words, except between a number of seconds and its unit."""

_HANG = 2
_GUTTER = re.compile(r" *= ")
"""Begins the hint of a diagnostic, whose further lines are aligned with its text."""


def fold_lines(text: str, columns: int, *, hang: int = _HANG) -> str:
    """Break lines that are wider than the terminal and indent what follows; nothing is left out.

    Example:
        >>> print(fold_lines("error: the file is not YAML (main.agent:3). Quote the value.", 30))
        error: the file is not YAML
          (main.agent:3). Quote the
          value.
    """
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, columns, hang))


def _pieces(line: str, columns: int, hang: int) -> Iterator[str]:
    if len(line) * 2 <= columns or _width(line) <= columns:
        yield line
        return
    plain = _COLOR.sub("", line)
    hint = _GUTTER.match(plain)
    indent = " " * (hint.end() if hint else len(plain) - len(plain.lstrip(" ")) + hang)
    if columns < 2 * len(indent):
        indent = ""
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    first, *rest = _BREAK.split(line[start:])
    current = line[:start] + first
    used = _width(current)
    for blanks, word in zip(rest[::2], rest[1::2], strict=True):
        size = _width(word)
        if used + len(blanks) + size > columns:
            yield current
            current, used = indent + word, len(indent) + size
        else:
            current, used = current + blanks + word, used + len(blanks) + size
    yield current


def _width(text: str) -> int:
    return text_width(_COLOR.sub("", text))

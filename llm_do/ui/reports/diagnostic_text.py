"""Diagnostics for people, for programs, and for GitHub's workflow annotations.

Nothing of a file reaches a terminal as it is: control, bidirectional and invisible characters are shown escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import lines_of
from llm_do.text.sanitizer import escape_controls
from llm_do.ui.terminal.screen import hyperlink
from llm_do.ui.terminal.text_width import character_width

__all__ = ["render_github", "render_json", "render_text", "summary"]

_TAB = 4
_WIDTH = 120
_LEAST = 20
_FAR = 2_000
_RESET = "\x1b[0m"
_COLORS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "frame": "\x1b[34m", "title": "\x1b[1m"}


def render_text(
    diagnostics: Iterable[Diagnostic],
    read_source: Callable[[str], str | None],
    *,
    color: bool = False,
    width: int | None = None,
    folder: Path | None = None,
) -> str:
    """Show diagnostics as a compiler does: the place, the line, a caret, a hint.

    Args:
        diagnostics: The diagnostics.
        read_source: Returns the text of a file, None for one that can't be read.
        color: Use ANSI colours.
        width: Columns of the terminal.
        folder: The folder that paths are relative to, if places may be links to the files.

    Example:
        >>> from llm_do.diagnostics.codes.shape import unknown_key
        >>> from llm_do.diagnostics.diagnostic import Location
        >>> found = unknown_key("modle", "", ["model"]).at(Location("a.agent", 2, 1, 2, 6))
        >>> print(render_text([found], lambda file: "---\\nmodle: x\\n---\\n"), end="")
        a.agent:2:1: error[LD120]: unknown key `modle`
          2 | modle: x
            | ^^^^^
            = did you mean `model`?
    """
    texts: dict[str, list[str]] = {}
    parts: list[str] = []
    for item in diagnostics:
        if item.file not in texts:
            text = read_source(item.file)
            texts[item.file] = lines_of(text.removeprefix("\ufeff")) if text is not None else []
        parts.extend(_block(item, texts[item.file], color, max(width or _WIDTH, _LEAST), folder))
    return "".join(f"{part}\n" for part in parts)


def _block(item: Diagnostic, lines: Sequence[str], color: bool, width: int, folder: Path | None) -> list[str]:
    def paint(text: str, name: str) -> str:
        return f"{_COLORS[name]}{text}{_RESET}" if color else text

    label = paint(f"{item.severity}[{item.code}]", item.severity)
    place = paint(f"{escape_controls(item.file)}:{item.line}:{item.column}:", "title")
    if folder is not None and item.file:
        place = hyperlink(place, str(folder / item.file))
    shown = [f"{place} {label}: {escape_controls(item.message)}"]
    number = str(item.line)
    gutter = " " * max(len(number), 3)
    if 1 <= item.line <= len(lines):
        line, caret = _excerpt(item, lines[item.line - 1], width - len(gutter) - 3)
        shown.append(f"{paint(f'{number:>{len(gutter)}} |', 'frame')} {line}".rstrip())
        shown.append(f"{paint(f'{gutter} |', 'frame')} {paint(caret, item.severity) if color else caret}")
    if item.hint is not None:
        shown.append(f"{paint(f'{gutter} =', 'frame')} {escape_controls(item.hint)}")
    shown += [f"{gutter}   {escape_controls(line)}".rstrip() for line in (item.block or "").splitlines()]
    return shown


def _excerpt(item: Diagnostic, line: str, room: int) -> tuple[str, str]:
    """The part of a source line around a place, and the carets below it."""
    start = min(max(item.column - 1, 0), len(line))
    end = len(line)
    if item.end is not None and item.end[0] == item.line:
        end = min(item.end[1] - 1, len(line))
    elif item.end is None:
        end = start + 1
    # Of a huge line, only what could be shown is examined: more than `room` characters, since some have no width.
    left = max(start - _FAR, 0) if len(line) > 2 * _FAR else 0
    rest = len(line) - left
    cells = _cells(line[left : start + _FAR] if left or rest > 2 * _FAR else line)
    start, end = start - left, max(end, start + 1) - left
    first, last = _window(cells, start, min(end, len(cells)), room)
    before, behind = ("…" if left or first else ""), ("…" if last < rest else "")
    text = before + "".join(shown for shown, _ in cells[first:last]) + behind
    indent = len(before) + sum(size for _, size in cells[first:start])
    length = sum(size for _, size in cells[start : min(end, last)])
    return text, f"{_indent(text, indent)}{'^' * max(length, 1)}"


def _indent(text: str, columns: int) -> str:
    return " " * columns if text or columns else ""


def _window(cells: Sequence[tuple[str, int]], start: int, end: int, room: int) -> tuple[int, int]:
    """Which cells to show so that they fit and the place is among them."""
    if sum(size for _, size in cells) <= room:
        return 0, len(cells)
    room -= 2
    first, last, used = start, start, 0
    while last < end and used + cells[last][1] <= room:
        used += cells[last][1]
        last += 1
    for _ in range(room // 3):  # some of the text in front of it, then the text behind it
        if first and used + cells[first - 1][1] <= room:
            first -= 1
            used += cells[first][1]
    while last < len(cells) and used + cells[last][1] <= room:
        used += cells[last][1]
        last += 1
    while first and used + cells[first - 1][1] <= room:
        first -= 1
        used += cells[first][1]
    return first, last


def _cells(line: str) -> list[tuple[str, int]]:
    """How each character is shown, and how many columns that takes."""
    cells: list[tuple[str, int]] = []
    column = 0
    for char in line:
        if char == "\t":
            size = _TAB - column % _TAB
            shown = " " * size
        elif " " <= char <= "~":
            shown, size = char, 1
        else:
            shown = escape_controls(char)
            size = len(shown) if shown != char else character_width(char)
        cells.append((shown, size))
        column += size
    return cells


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Count diagnostics for a last line.

    Example:
        >>> summary([])
        'no errors'
    """
    errors, warnings = _count(diagnostics)
    shown = "no errors" if not errors else f"{errors} error{'s' * (errors > 1)}"
    return shown + (f", {warnings} warning{'s' * (warnings > 1)}" if warnings else "")


def _count(diagnostics: Iterable[Diagnostic]) -> tuple[int, int]:
    severities = [item.severity for item in diagnostics]
    return severities.count("error"), severities.count("warning")


def render_json(diagnostics: Iterable[Diagnostic], more: Mapping[str, object] | None = None) -> str:
    """Show diagnostics as one JSON object, with `more` keys, in ASCII so that any terminal and file can hold it.

    Example:
        >>> print(render_json([]), end="")
        {"diagnostics": [], "errors": 0, "warnings": 0}
    """
    found = list(diagnostics)
    errors, warnings = _count(found)
    document = {"diagnostics": [item.to_dict() for item in found], "errors": errors, "warnings": warnings}
    return json.dumps({**document, **(more or {})}, indent=2 if found or more else None) + "\n"


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Show diagnostics as GitHub workflow commands, which become annotations of a pull request.

    Example:
        >>> from llm_do.diagnostics.codes.shape import unknown_key
        >>> from llm_do.diagnostics.diagnostic import Location
        >>> print(render_github([unknown_key("a", "", ()).at(Location("x,y.agent", 2))]), end="")
        ::error file=x%2Cy.agent,line=2,col=1,title=LD120::unknown key `a`%0Aleave it out
    """
    return "".join(f"{_command(item)}\n" for item in diagnostics)


def _command(item: Diagnostic) -> str:
    properties = {"file": item.file, "line": str(item.line)}
    if item.end is not None:
        properties["endLine"] = str(item.end[0])
    if item.end is None or item.end[0] == item.line:  # columns are refused for a stretch of several lines
        properties["col"] = str(item.column)
        if item.end is not None:
            properties["endColumn"] = str(item.end[1])
    properties["title"] = item.code
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    more = "".join(f"%0A{_data(text)}" for text in (item.hint, item.block) if text is not None)
    return f"::{item.severity} {shown}::{_data(item.message)}{more}"


def _data(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escape_controls(text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

"""The report for a person at a terminal: a mark for each test as it ends, then the failures, then a line of counts."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from llm_do.testing.cases.causes import Cause, causes_of
from llm_do.testing.cases.results import CaseResult, CaseStatus, Failure, SuiteResult
from llm_do.testing.reports.written_text import place, shorten, writable

__all__ = ["Paint", "Progress", "failure_lines", "summary_line"]

Style: TypeAlias = Literal["good", "bad", "warn", "name", "quiet"]
Paint: TypeAlias = Callable[[str, Style], str]
"""Colours a text, or returns it as it is."""

_MARKS: dict[CaseStatus, tuple[str, Style]] = {
    "passed": (".", "good"),
    "failed": ("F", "bad"),
    "error": ("E", "bad"),
    "skipped": ("-", "warn"),
}
_COUNTS: tuple[tuple[CaseStatus, str, Style], ...] = (
    ("failed", "failed", "bad"),
    ("error", "with errors", "bad"),
    ("passed", "passed", "good"),
    ("skipped", "not run", "warn"),
)
_WIDEST = 100
_MOST_CASES = 10
_MOST_LINES = 60


class Progress:
    """Writes a line for each test file, with a mark for each of its tests.

    Args:
        write: Writes text.
        width: How wide a line may be.
        paint: Colours it.
        folder: The project's folder, seen from the current one.
    """

    def __init__(self, write: Callable[[str], object], width: int, paint: Paint, folder: Path) -> None:
        self._write = write
        self._width = width
        self._paint = paint
        self._folder = folder
        self._file: tuple[Path, str | None] | None = None
        self._column = 0

    def add(self, case: CaseResult) -> None:
        """Show that a test has ended."""
        where = (case.file, case.column)
        if where != self._file:
            self.end()
            self._file = where
            label = place(case.file, None, self._folder) + (f" [{case.column}]" if case.column is not None else "")
            self._write(f"{label} ")
            self._column = len(label) + 1
        if self._column >= self._width:
            self._write("\n  ")
            self._column = 2
        self._write(self._paint(*_MARKS[case.status]))
        self._column += 1

    def end(self) -> None:
        """End the line."""
        if self._file is not None:
            self._write("\n")
        self._file = None


def failure_lines(suite: SuiteResult, width: int, paint: Paint, folder: Path) -> Iterator[str]:
    """The failures, those of one cause once."""
    for cause in causes_of(suite):
        yield ""
        yield from _cause_lines(cause, min(width, _WIDEST), paint, folder)


def _cause_lines(cause: Cause, width: int, paint: Paint, folder: Path) -> Iterator[str]:
    first = cause.cases[0]
    if len(cause.cases) == 1:
        rate = f" ({first.passed_repeats} of {first.repeats} passed)" if first.repeats > 1 else ""
        column = f" [{first.column}]" if first.column is not None else ""
        yield _rule(f"{first.name}{column}{rate}", place(first.file, first.line, folder), width, paint)
        for failure in cause.failures:
            yield from _lines(failure, failure.hint, width, paint, folder)
        return
    yield _rule(f"{len(cause.cases)} tests have one cause", "", width, paint)
    one = Failure(cause.failures[0].file, cause.failures[0].line, cause.what, block=cause.failures[0].block)
    yield from _lines(one, cause.hint, width, paint, folder)
    for case in cause.cases[:_MOST_CASES]:
        column = f" [{case.column}]" if case.column is not None else ""
        yield f"  {place(case.file, case.line, folder)} {writable(case.name, lines=False)}{column}"
    if len(cause.cases) > _MOST_CASES:
        yield f"  … {len(cause.cases) - _MOST_CASES} more"


def _rule(name: str, where: str, width: int, paint: Paint) -> str:
    """The line above a failure: the test's name and its place, or only the name where both don't fit."""
    name = shorten(writable(name, lines=False), 200)
    rest = width - len(name) - len(where) - 8
    if not where or rest < 1:
        line = f"── {name} {'─' * max(2, width - len(name) - 4)}"
        return paint(line, "bad") if not where else f"{paint(line, 'bad')}\n{where}"
    return paint(f"── {name} {'─' * rest} {where} ──", "bad")


def _lines(failure: Failure, hint: str | None, width: int, paint: Paint, folder: Path) -> Iterator[str]:
    where = f"{place(failure.file, failure.line, folder)}:" if failure.file is not None else ""
    first, *others = _folded(f"{where} {writable(failure.what, lines=False)}".strip(), width, "")
    yield paint(where, "name") + first.removeprefix(where)
    yield from others
    if failure.expected is not None:
        yield from _folded(f"expected: {writable(failure.expected, lines=False)}", width, "  ", "            ")
    if failure.got is not None:
        yield from _folded(f"got:      {writable(failure.got, lines=False)}", width, "  ", "            ")
    if failure.block is not None:
        yield from _block(failure.block, width, paint)
    if hint is not None:
        for line in _folded(writable(hint, lines=False), width, "  "):
            yield paint(line, "name")


def _block(block: str, width: int, paint: Paint) -> Iterator[str]:
    """A block: a diff as it is, its lines coloured; other lines are folded, but for those of a quoted text."""
    lines = writable(block).split("\n")
    is_diff = any(line.startswith("@@") for line in lines)
    for line in lines[:_MOST_LINES]:
        if is_diff and line[:1] in ("+", "-"):
            yield paint(f"    {line}", "good" if line[0] == "+" else "bad")
        elif is_diff or line.startswith(("│", " ")) or not line:
            yield f"    {line}".rstrip()
        else:
            yield from _folded(line, width, "    ", "      ")
    if len(lines) > _MOST_LINES:
        yield f"    … {len(lines) - _MOST_LINES} more lines"


def _folded(text: str, width: int, indent: str, further: str | None = None) -> Sequence[str]:
    """A sentence in lines; words longer than a line, such as paths, stay whole."""
    return textwrap.wrap(
        text,
        max(width, 30),
        initial_indent=indent,
        subsequent_indent=indent + "  " if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    ) or [indent]


def summary_line(suite: SuiteResult, paint: Paint, *, interrupted: bool = False) -> str:
    """How many tests ended how, and how long it took."""
    words = [paint(f"{count} {noun}", style) for status, noun, style in _COUNTS if (count := suite.count(status))]
    head = f"{paint('interrupted', 'bad')}: " if interrupted else ""
    return f"{head}{', '.join(words)} in {suite.seconds:.2f} s"

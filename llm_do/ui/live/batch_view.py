"""`BatchView`: how far a batch is, on stderr: a line that is written over, or without a terminal one now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do.runtime.record.redaction import redactor
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.block import Block
from llm_do.ui.terminal.folding import fold_lines
from llm_do.ui.terminal.screen import paint

if TYPE_CHECKING:
    from llm_do.durable.progress import FailureKind, Failures, InputFailure, Progress

__all__ = ["BatchView", "duration", "progress_text", "summary_lines"]

EVERY = 10.0
"""Seconds between two lines where nothing can be written over."""

SHOWN_OF_A_KIND = 3
"""Failures of one kind that are shown as they happen; the others are counted."""

SHOWN_KINDS = 8
"""Kinds of failures in the summary."""

BAR = 20
"""The most columns of the bar."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"


class BatchView:
    """Shows how far a batch is.

    Args:
        progress: The counts.
        write: Writes to stderr.
        size: Columns and rows of the terminal.
        live: Keep a line at the bottom of the terminal that is written over.
        quiet: Show nothing.
        color: Use ANSI colours.
        lines: Draw with more than ASCII.
    """

    def __init__(
        self,
        progress: Progress,
        write: Callable[[str], None],
        size: Callable[[], tuple[int, int]],
        *,
        live: bool,
        quiet: bool = False,
        color: bool = False,
        lines: bool = True,
    ) -> None:
        self._progress = progress
        self._write = write
        self._size = size
        self._block = Block(write, lambda: size()[0]) if live and not quiet else None
        self._quiet = quiet
        self._color = color
        self._lines = lines
        self._said = time.monotonic()

    def tick(self) -> None:
        """Show where the batch is now."""
        if self._block is not None:
            self._block.show([self._row(self._size()[0])])
        elif not self._quiet and time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            self._write(f"{progress_text(self._progress)}\n")

    def line(self, text: str) -> None:
        """Show a line above, sanitized already."""
        if self._quiet:
            return
        if self._block is None:
            self._write(f"{text}\n")
        else:
            self._block.above(f"{fold_lines(text, self._size()[0])}\n")

    def foreign(self, text: str) -> None:
        """Show what other code has printed."""
        if self._block is None:
            self._write(text)
        else:
            self._block.above("".join(f"{sanitize(each)}\n" for each in text.splitlines()))

    def fail(self, failure: InputFailure, kind: FailureKind) -> None:
        """Show a failure; of many that have one reason, only the first ones."""
        if kind.count <= SHOWN_OF_A_KIND:
            text = f"line {failure.ordinal} {failure.status.replace('_', ' ')}: {_error_text(kind)}"
            self.line(paint(text, "bad", color=self._color))
        elif kind.count == SHOWN_OF_A_KIND + 1:
            self.line("more failures of this kind are only counted")

    def end(self) -> None:
        """Take the line away."""
        if self._block is not None:
            self._block.clear()

    def aside(self, work: Callable[[], None]) -> None:
        """Let something else write to the terminal."""
        self.end()
        work()

    def _row(self, columns: int) -> str:
        """The live line, as much of it as fits."""
        progress = self._progress
        parts = _parts(progress)
        room = columns - 2
        while len(parts) > 1 and sum(len(text) + 2 for text, _ in parts) > room:
            parts.pop()
        left = room - sum(len(text) + 2 for text, _ in parts)
        bar = min(BAR, left) if left >= MIN_BAR else 0
        drawn = _bar(progress.done / progress.total if progress.total else 1.0, bar, lines=self._lines)
        painted = [paint(text, style, color=self._color) for text, style in parts]
        return " " + "  ".join([paint(drawn, "good", color=self._color), *painted] if bar else painted)


MIN_BAR = 6
"""The fewest columns of a bar that says anything."""


def _bar(share: float, columns: int, *, lines: bool) -> str:
    """A bar of so many columns.

    Example:
        >>> _bar(0.5, 5, lines=True), _bar(0.5, 6, lines=False)
        ('██▌  ', '###   ')
    """
    share = min(max(share, 0.0), 1.0)
    if not lines:
        return ("#" * int(share * columns)).ljust(columns)
    eighths = int(share * columns * 8)
    rest = _EIGHTHS[eighths % 8] if eighths % 8 else ""
    return ("█" * (eighths // 8) + rest).ljust(columns)


def _parts(progress: Progress) -> list[tuple[str, str]]:
    """What there is to say, the most important first, each with its style."""
    parts = [(f"{progress.done:,}/{progress.total:,}", "")]
    rate = progress.rate()
    if rate is not None:
        parts.append((f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s", "quiet"))
    parts.append((f"{progress.running} running", ""))
    if progress.waiting:
        parts.append((f"{progress.waiting} waiting", "ask"))
    if progress.failed:
        parts.append((f"{progress.failed:,} failed", "bad"))
    if progress.used or progress.budget is not None:
        parts.append((_cost(progress), ""))
    left = progress.seconds_left()
    if left is not None:
        parts.append((f"eta {duration(max(left, 1))}", "quiet"))
    return parts


def progress_text(progress: Progress) -> str:
    """Where a batch is, as a line for a log."""
    return ", ".join(text for text, _ in _parts(progress))


def _cost(progress: Progress) -> str:
    used = f"${progress.used:.2f}" if progress.used >= 1 or not progress.used else f"${progress.used:.3g}"
    return used if progress.budget is None else f"{used} of ${progress.budget:.2f}"


def duration(seconds: float) -> str:
    """A time as people say it.

    Example:
        >>> duration(14.2), duration(150), duration(9000)
        ('14 s', '2 min 30 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 and whole < 600 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def summary_lines(progress: Progress, failures: Failures) -> list[str]:
    """What has come of a batch: counts, and failures by kind."""
    counts = [f"{progress.completed:,} completed"]
    if progress.failed:
        counts.append(f"{progress.failed:,} failed")
    if progress.waiting:
        counts.append(f"{progress.waiting:,} waiting")
    left = progress.total - progress.done - progress.waiting
    if left:
        counts.append(f"{left:,} not done")
    text = f"{progress.total:,} inputs in {duration(progress.seconds)}: {', '.join(counts)}"
    if progress.used or progress.budget is not None:
        text += f"; {_cost(progress)}"
    kinds = failures.kinds()
    rows = [f"  {kind.count:,} × {_error_text(kind)} ({_places(kind)})" for kind in kinds[:SHOWN_KINDS]]
    if len(kinds) > SHOWN_KINDS:
        rows.append(f"  and {sum(kind.count for kind in kinds[SHOWN_KINDS:]):,} of other kinds")
    return [text, *rows]


def _places(kind: FailureKind) -> str:
    places = ", ".join(f"{place:,}" for place in kind.places)
    if kind.count == 1:
        return f"line {places}"
    return f"lines {places}{', …' if kind.count > len(kind.places) else ''}"


def _error_text(kind: FailureKind) -> str:
    text = sanitize(redactor()(" ".join(kind.error.message.split())))
    return f"{text[:LONGEST]}…" if len(text) > LONGEST else text


LONGEST = 300
"""Characters of an error that are shown of each failure; all of it is in the result."""

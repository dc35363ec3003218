"""A block of lines at the bottom of a terminal that is written over, below a transcript that stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from llm_do.ui.terminal.text_width import text_width

__all__ = ["Block"]

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Block:
    """Lines that change, the cursor always in the first column below them.

    Each change is one write that overwrites line by line, so that nothing flickers. A terminal that was made narrower
    has broken the lines again, which is counted when they are taken away.

    Args:
        write: Writes to the terminal.
        columns: How wide it is now.
    """

    def __init__(self, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self._write = write
        self._columns = columns
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines instead of those before; each fits into a row."""
        if list(lines) != self._shown:
            self._put("", lines)

    def above(self, text: str) -> None:
        """Add to the transcript."""
        self._put(text, self._shown)

    def clear(self) -> None:
        """Take the block away."""
        if self._shown:
            self._put("", ())

    def _put(self, text: str, lines: Sequence[str]) -> None:
        if not self._shown and not lines:
            self._write(text)
            return
        rows = [*text.split("\n")[:-1], *lines] if text else list(lines)
        drawn = "".join(f"{row}\x1b[K\n" for row in rows)
        self._write(f"{self._back()}{drawn}\x1b[J")
        self._shown = list(lines)

    def _back(self) -> str:
        """Move to where the block begins."""
        columns = max(self._columns(), 1)
        rows = sum(max(1, -(-text_width(_STYLE.sub("", line)) // columns)) for line in self._shown)
        return f"\r\x1b[{rows}A" if rows else "\r"

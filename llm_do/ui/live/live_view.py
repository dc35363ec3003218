"""The live view of runs on a terminal: the tree of calls in progress at the bottom, the transcript above."""

from __future__ import annotations

import time
from collections.abc import Callable

from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.run_events import WarningEvent
from llm_do.ui.live.agent_totals import AgentTotals
from llm_do.ui.live.block import Block
from llm_do.ui.live.call_tree import CallTree
from llm_do.ui.live.event_lines import warning_line
from llm_do.ui.live.transcript import Transcript
from llm_do.ui.terminal.folding import fold_lines

__all__ = ["Live"]

_FRAME = 0.05
"""Least seconds between two updates of streamed text."""

_SHARE = 3 / 4
"""The part of a high terminal that the tree may take; of a low one it takes all but three rows."""

_LOW = 20


class Live:
    """Tree and transcript of one terminal.

    Args:
        write: Writes to it.
        size: Its columns and rows now.
        color: Use ANSI colours.
        lines: Draw with more than ASCII.

    Attributes:
        totals: What each agent has done in the current run.
    """

    def __init__(
        self, write: Callable[[str], None], size: Callable[[], tuple[int, int]], *, color: bool, lines: bool
    ) -> None:
        self._size = size
        self._tree = CallTree(color=color, lines=lines)
        self._transcript = Transcript(self._tree, color=color, lines=lines)
        self._block = Block(write, lambda: size()[0])
        self._drawn = 0.0
        self.totals = AgentTotals()

    @property
    def columns(self) -> int:
        """The terminal's width now."""
        return self._size()[0]

    def take(self, event: Event) -> str:
        """Take an event in."""
        self.totals.take(event)
        if isinstance(event, WarningEvent):
            return f"{self.release()}{fold_lines(warning_line(event), self.columns)}\n"
        text = self._transcript.take(event, self._size()[0])
        self._tree.update(event)
        return text

    def release(self) -> str:
        """Lines that were held back, since something else is about to be shown."""
        return self._transcript.release(self._size()[0])

    def tick(self, *, soon: bool = False) -> None:
        """Draw the tree."""
        moment = time.monotonic()
        if soon and moment - self._drawn < _FRAME:
            return
        self._drawn = moment
        columns, rows = self._size()
        self._block.show(self._tree.draw(time.time(), columns, max(min(rows - 3, max(_LOW, int(rows * _SHARE))), 2)))

    def above(self, text: str) -> None:
        """Add lines to the transcript."""
        self._block.above(text)

    def clear(self) -> None:
        """Hide the tree until the next tick."""
        self._block.clear()

    def rest(self, output: str | None) -> str:
        """The texts that the transcript has held back, at the end of a run whose output is shown elsewhere."""
        return self._transcript.rest(output, self._size()[0])

"""What a run shows on stderr: lines, streamed text, or a live tree below a transcript; never its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import RetryEvent, TextDoneEvent, TextEvent, ThinkingEvent
from llm_do.runtime.record.events.run_events import WarningEvent
from llm_do.runtime.record.redaction import redactor
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.event_lines import event_line, warning_line
from llm_do.ui.live.shown_events import shown_event
from llm_do.ui.terminal.screen import terminal_columns
from llm_do.ui.terminal.size import terminal_size

if TYPE_CHECKING:
    from llm_do.ui.live.live_view import Live

__all__ = ["Display"]

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Display:
    """Shows events as they come.

    Args:
        write: Writes text to stderr.
        verbosity: -1 for nothing, 0 for warnings, 1 for lines, 2 for text and thinking too.
        animate: Keep a live tree at the bottom of the terminal, and a transcript above it.
        color: Use ANSI colours.
        lines: Draw with box characters.
        size: Columns and rows of the terminal.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        verbosity: int = 0,
        *,
        animate: bool = False,
        color: bool = False,
        lines: bool = True,
        size: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self._write = write
        self._verbosity = verbosity
        self._color = color
        self._lines = lines
        self._live: Live | None = None
        if animate:
            from llm_do.ui.live.live_view import Live

            self._live = Live(write, size or terminal_size, color=color, lines=lines)
        self._held: list[str] | None = None
        self._open: str | None = None
        self._streamed: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Show an event, if the verbosity asks for it."""
        if self._live is None and self._verbosity < (0 if isinstance(event, WarningEvent) else 1):
            return
        event = shown_event(event)
        if self._live is not None:
            text = self._live.take(event)
            if text:
                self._put(text)
            if self._held is None:
                self._live.tick(soon=isinstance(event, TextEvent))
            return
        if isinstance(event, WarningEvent):
            self.line(warning_line(event))
        elif self._verbosity >= 2 and isinstance(event, TextEvent | TextDoneEvent | ThinkingEvent):
            self._text(event)
        else:
            if isinstance(event, RetryEvent):
                self._streamed.discard(event.call_id)
            line = event_line(event)
            if line is not None:
                self.line(line)

    def line(self, text: str) -> None:
        """Show one line, sanitized already, without its secrets; it is folded if the terminal is too narrow."""
        text = redactor()(text)
        self._before_other()
        # With a live tree, stderr is a pipe that the display itself reads.
        columns = terminal_columns() if self._live is None else self._live.columns
        if columns is not None and len(text) * 2 > columns:
            from llm_do.ui.terminal.folding import fold_lines

            text = fold_lines(text, columns)
        self._put(f"{text}\n")

    def foreign(self, text: str) -> None:
        """Show what was printed to stderr by other code, without cursor movements."""
        shown = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))
        self._before_other()
        self._put(shown)

    def hold(self) -> None:
        """Show nothing until `release`: the terminal is in use."""
        self._before_other()
        if self._live is not None:
            self._live.clear()
        self._held = []

    def release(self) -> None:
        """Show what was held back, and continue."""
        held, self._held = self._held or [], None
        for text in held:
            self._put(text)
        self.tick()

    def tick(self) -> None:
        """Update the tree."""
        if self._live is not None and self._held is None:
            self._live.tick()

    def end(self, *, output: str | None = None) -> None:
        """Remove the tree: the run has ended."""
        self._close()
        if self._live is not None:
            left = self._live.rest(None if output is None else redactor()(output))
            self._live.clear()
            if left:
                self._write(left)

    def agent_lines(self) -> list[str]:
        """What each agent has done in the run that ended last, where a live tree was shown."""
        if self._live is None:
            return []
        return self._live.totals.lines(self._live.columns, color=self._color, lines=self._lines)

    def _before_other(self) -> None:
        """Finish what is open, before something else is shown."""
        self._close()
        if self._live is not None and (held := self._live.release()):
            self._put(held)

    def _text(self, event: TextEvent | TextDoneEvent | ThinkingEvent) -> None:
        if isinstance(event, TextDoneEvent):
            if event.call_id in self._streamed:
                self._streamed.discard(event.call_id)
                self._close()
                return
        elif isinstance(event, TextEvent):
            self._streamed.add(event.call_id)
        mark = f"{sanitize(event.path)} {'~' if isinstance(event, ThinkingEvent) else '|'} "
        start = "" if self._open == mark else mark
        if start:
            self._close()
        # Every line starts with the mark, so a model's text can't pass for a line of ours.
        self._put(start + sanitize(event.text, lines=True).replace("\n", f"\n{mark}"))
        self._open = mark
        if not isinstance(event, TextEvent):
            self._close()

    def _close(self) -> None:
        """End a line that streamed text has left open."""
        if self._open is not None:
            self._open = None
            self._put("\n")

    def _put(self, text: str) -> None:
        if self._held is not None:
            self._held.append(text)
        elif self._live is not None:
            self._live.above(text)
        else:
            self._write(text)

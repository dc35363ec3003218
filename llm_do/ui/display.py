"""What a person sees of a run on stderr: lines, streamed text, or one line of progress. Results go elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from llm_do.policy.display import visible
from llm_do.runtime.events import Event, RetryEvent, TextDoneEvent, TextEvent, ThinkingEvent, WarningEvent
from llm_do.ui.lines import event_line, warning_line
from llm_do.ui.progress import Progress

__all__ = ["Display"]

_CLEAR = "\r\x1b[K"


class Display:
    """Shows events as they come.

    Args:
        write: Writes text to stderr.
        verbosity: -1 nothing, 0 warnings, 1 lines, 2 text and thoughts too.
        animate: Keep a line of progress at the bottom of the terminal.
    """

    def __init__(self, write: Callable[[str], None], verbosity: int = 0, *, animate: bool = False) -> None:
        self._write = write
        self._verbosity = verbosity
        self._progress = Progress(time.monotonic()) if animate else None
        self._drawn = ""
        self._held: list[str] | None = None
        self._open: str | None = None
        self._streamed: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take one event in, and show what is to be shown of it."""
        if self._progress is not None:
            self._progress.note(event)
        if isinstance(event, WarningEvent):
            if self._verbosity >= 0:
                self.line(warning_line(event))
        elif self._verbosity >= 2 and isinstance(event, TextEvent | TextDoneEvent | ThinkingEvent):
            self._text(event)
        elif self._verbosity >= 1:
            if isinstance(event, RetryEvent):
                self._streamed.discard(event.call_id)
            line = event_line(event)
            if line is not None:
                self.line(line)
        self.tick()

    def line(self, text: str) -> None:
        """Show one line, made harmless already."""
        self._close()
        self._put(f"{text}\n")

    def hold(self) -> None:
        """Show nothing until `release`: the terminal is somebody else's."""
        self._close()
        self._erase()
        self._held = []

    def release(self) -> None:
        """Show what was held back, and go on."""
        held, self._held = self._held or [], None
        for text in held:
            self._put(text)
        self.tick()

    def tick(self) -> None:
        """Bring the line of progress up to date."""
        if self._progress is None or self._held is not None or self._open is not None:
            return
        columns = 80
        with suppress(OSError):
            columns = os.get_terminal_size(2).columns or 80
        text = self._progress.text(time.monotonic(), columns - 1)
        if text != self._drawn:
            self._write(f"{_CLEAR}{text}")
            self._drawn = text

    def end(self) -> None:
        """Take the line of progress away; nothing comes after."""
        self._close()
        self._erase()
        self._progress = None

    def _text(self, event: TextEvent | TextDoneEvent | ThinkingEvent) -> None:
        if isinstance(event, TextDoneEvent):
            if event.call_id in self._streamed:
                self._streamed.discard(event.call_id)
                self._close()
                return
        elif isinstance(event, TextEvent):
            self._streamed.add(event.call_id)
        mark = f"{visible(event.path)} {'~' if isinstance(event, ThinkingEvent) else '|'} "
        begun = "" if self._open == mark else mark
        if begun:
            self._close()
        # Every line behind the mark: a model's text can't pass for a line of ours.
        self._put(begun + visible(event.text, lines=True).replace("\n", f"\n{mark}"))
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
            return
        self._erase()
        self._write(text)

    def _erase(self) -> None:
        if self._drawn:
            self._write(_CLEAR)
            self._drawn = ""

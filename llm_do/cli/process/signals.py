"""SIGINT and SIGTERM: the first ends a run in good order within two seconds, a second one at once.

A command that runs nothing just ends, and takes what it has started with it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

__all__ = ["Interrupts", "end_in_order", "kill_children"]

PATIENCE = 1.6
"""Seconds that tools have to clean up; with the time a process needs to end, that stays below two."""


class Interrupts:
    """What the signals of this process are told to do.

    Args:
        stop: Ends what is running, in good order. None while nothing is: then a signal is a `KeyboardInterrupt`.
        last_words: Writes what has to be written when there is no time for good order.
        restore: Gives the terminal back as it was.
        signum: The signal that came; None is none yet.
    """

    def __init__(self) -> None:
        self.restore: Callable[[], object] = lambda: None
        self.stop: Callable[[], None] | None = None
        self.last_words: Callable[[], None] = lambda: None
        self.signum: int | None = None
        self._count = 0
        self._over = threading.Event()

    @property
    def exit_code(self) -> int:
        """The exit code for the signal that came."""
        return 128 + (self.signum or signal.SIGINT)

    def install(self) -> None:
        """Listen from now on. A signal that the process was started to ignore stays ignored."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrived)

    def forget(self) -> None:
        """What was to end has ended, and the process goes on: the next signal is a first one again."""
        self.signum = None
        self._count = 0
        self._over.set()
        self._over = threading.Event()

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._die(quietly=self._count > 2)
        self.signum = number
        threading.Thread(target=self._watch, name="llm-do-deadline", daemon=True).start()
        if self.stop is None:
            raise KeyboardInterrupt
        self.stop()

    def _watch(self) -> None:
        if not self._over.wait(PATIENCE):
            self._die()

    def _die(self, quietly: bool = False) -> None:
        with suppress(BaseException):
            self.restore()
        kill_children()
        if not quietly:
            with suppress(BaseException):
                self.last_words()
        os._exit(self.exit_code)


def end_in_order() -> None:
    """Let SIGTERM end the process as an exception does, so that a process which it has started ends with it.

    To be called first; `Interrupts` takes its place where a run goes on.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def kill_children() -> None:
    """Kill every process that descends from this one, where the system tells who that is."""
    for process in _descendants(os.getpid()):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for listing in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(OSError):
                for child in listing.read_text().split():
                    found += [int(child), *_descendants(int(child))]
    return found

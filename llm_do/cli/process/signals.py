"""SIGINT, SIGTERM and SIGHUP: the first ends a run cleanly within two seconds, a second one at once.

A command without a run just ends, together with the processes it has started.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

__all__ = ["Interrupts", "exit_on_signals", "guard_children", "kill_children"]

ENDING = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
"""The signals that ask a process to end; the system sends SIGHUP when its terminal is closed."""

PATIENCE = 1.6
"""Seconds that tools have to clean up; with the time a process needs to end, it stays below two."""


class Interrupts:
    """What signals do in this process.

    Args:
        stop: Ends what is running, cleanly. While it is None, a signal raises `KeyboardInterrupt`.
        last_words: Writes the rest of the output when there is no time to end cleanly.
        restore: Restores the terminal.
        signum: The signal received, None until there is one.
        patience: Seconds until the process is ended in any case.
    """

    def __init__(self) -> None:
        self.restore: Callable[[], object] = lambda: None
        self.stop: Callable[[], None] | None = None
        self.last_words: Callable[[], None] = lambda: None
        self.signum: int | None = None
        self.patience = PATIENCE
        self._count = 0
        self._over = threading.Event()

    @property
    def ends_process(self) -> bool:
        """Whether the signal was for the process, not only for what it does at the moment."""
        return self.signum in ENDING

    @property
    def description(self) -> str:
        """What happened, in a line for a log."""
        return f"interrupted by {signal.Signals(self.signum or signal.SIGINT).name}"

    @property
    def exit_code(self) -> int:
        """The exit code for the signal received."""
        return 128 + (self.signum or signal.SIGINT)

    def install(self) -> None:
        """Handle signals from now on. One that the process was started to ignore stays ignored."""
        for number in (signal.SIGINT, *ENDING):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def forget(self) -> None:
        """The interrupted work has ended and the process continues: the next signal counts as the first again."""
        self.signum = None
        self._count = 0
        self._over.set()
        self._over = threading.Event()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._die(quietly=self._count > 2)
        self.signum = number
        threading.Thread(target=self._watch, name="llm-do-deadline", daemon=True).start()
        if self.stop is None:
            raise KeyboardInterrupt
        self.stop()

    def _watch(self) -> None:
        if not self._over.wait(self.patience):
            self._die()

    def _die(self, quietly: bool = False) -> None:
        with suppress(BaseException):
            self.restore()
        kill_children()
        if not quietly:
            with suppress(BaseException):
                self.last_words()
        os._exit(self.exit_code)


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process by an exception, so that processes it has started end with it.

    Call it first; `Interrupts` takes over during a run.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def guard_children() -> None:
    """Let what this process starts from now on end with it, even if it is killed."""
    from llm_do.concurrency.lifeline import cut_lifeline, guarded_environment

    os.environ.update(guarded_environment())
    atexit.register(cut_lifeline)


def kill_children() -> None:
    """Kill all descendants of this process, on systems that list them, those with another parent included."""
    for process in _descendants(os.getpid()):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    # Not imported here: a module that hangs may be what has to be ended.
    lifeline = sys.modules.get("llm_do.concurrency.lifeline")
    if lifeline is not None:
        lifeline.kill_marked()


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for listing in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(OSError):
                for child in listing.read_text().split():
                    found += [int(child), *_descendants(int(child))]
    return found

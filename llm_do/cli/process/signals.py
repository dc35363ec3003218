"""SIGINT, SIGTERM and SIGHUP: the first ends a run cleanly within two seconds, a second one at once.

A command without a run just ends, together with the processes it has started.

While a command prepares its work, a signal ends it by an exception, raised wherever the process is. Native code that
calls Python, such as a validator with a regular expression, may drop that exception or make another one of it. So a
dropped one is raised again, and whoever reports errors first asks whether a signal was `received`.
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

__all__ = ["Interrupts", "exit_on_signals", "guard_children", "kill_children", "received"]

ENDING = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
"""The signals that ask a process to end; the system sends SIGHUP when its terminal is closed."""

PATIENCE = 1.6
"""Seconds that tools have to clean up; with the time a process needs to end, it stays below two."""


_AGAIN = 0.001
"""Seconds until an exception that was dropped is raised again."""


class _Delivery:
    """The last signal that was received, until its exception has ended what the process does.

    Args:
        number: The signal; None when there was none, or when what it was for has ended.
        error: The exception that was raised for it.
        deliver: Raises again, or does what a signal does by now.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.error: BaseException | None = None
        self.deliver: Callable[[], None] = lambda: None

    def clear(self) -> None:
        self.number = self.error = None

    def start(self, number: int, deliver: Callable[[], None]) -> None:
        self.number, self.deliver = number, deliver
        try:
            deliver()
        except BaseException as error:
            self.error = error
            raise


_delivery = _Delivery()


def received() -> int | None:
    """Return the exit code for the signal that is to end the process; None if there was none."""
    return None if _delivery.number is None else 128 + _delivery.number


def _watch_dropped_exceptions() -> None:
    """Raise a signal's exception again if it was raised where no exception can be, such as in a finalizer."""
    report = sys.unraisablehook

    def drop(unraisable: sys.UnraisableHookArgs, /) -> None:
        if unraisable.exc_value is None or unraisable.exc_value is not _delivery.error:
            report(unraisable)
        elif hasattr(signal, "setitimer"):  # the next signal ends the process elsewhere
            signal.signal(signal.SIGALRM, again)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)

    def again(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is drop.__code__:
                signal.setitimer(signal.ITIMER_REAL, _AGAIN)
                return
            frame = frame.f_back
        if _delivery.number is not None:
            _delivery.start(_delivery.number, _delivery.deliver)

    sys.unraisablehook = drop


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
        _delivery.clear()
        self._count = 0
        self._over.set()
        self._over = threading.Event()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._die(quietly=self._count > 2)
        self.signum = number
        with suppress(RuntimeError):  # where no thread can be started, the second signal ends what hangs
            threading.Thread(target=self._watch, name="llm-do-deadline", daemon=True).start()
        _delivery.start(number, self._deliver)

    def _deliver(self) -> None:
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
    """Let SIGINT, SIGTERM and SIGHUP end the process by an exception, so that processes it has started end with it.

    Call it first; `Interrupts` takes over during a run.
    """
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    _watch_dropped_exceptions()


def _leave(number: int, _: FrameType | None) -> None:
    _delivery.start(number, lambda: _exit(number))


def _exit(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def guard_children() -> None:
    """Let what this process starts from now on end with it, even if it is killed."""
    from llm_do.concurrency.lifeline import cut_lifeline, guarded_environment

    os.environ.update(guarded_environment())
    atexit.register(cut_lifeline)


def kill_children() -> None:
    """Kill all descendants of this process, on systems that list them, those with another parent included."""
    # Not imported here: a module that hangs may be what has to be ended.
    lifeline = sys.modules.get("llm_do.concurrency.lifeline")
    spared = lifeline.lifeline_process() if lifeline is not None else None  # it removes folders after this process
    for process in _descendants(os.getpid()):
        if process != spared:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
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

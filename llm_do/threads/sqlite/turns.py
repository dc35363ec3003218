"""Lets the processes that write to a store do so in the order in which they asked.

SQLite alone lets a waiting process look for a free moment less and less often, so that one of many may wait for ever.
Its own lock still decides who writes; this one only keeps the queue, and whoever waits too long continues without it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, SQLite's lock has to do
    fcntl = None

__all__ = ["Turns"]

PATIENCE = 10.0
"""Seconds to wait for a turn: its holder may have been stopped."""


class Turns:
    """The queue of one store, on a lock file beside it.

    Args:
        path: The lock file, created at the first turn.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait until it is this process's turn, and keep it meanwhile."""
        self._wait()
        try:
            yield
        finally:
            if self._descriptor is not None and fcntl is not None:
                with suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _wait(self) -> None:
        if fcntl is None:
            return
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._queue()
        except OSError:  # no file can be created, or there are no locks in this file system
            self.close()

    def _queue(self) -> None:
        """Wait in the kernel, which keeps the order, in a thread that can be left behind."""
        assert self._descriptor is not None
        waiter = _Waiter(self._descriptor)
        try:
            waiter.start()
        except RuntimeError:  # since Python 3.12, a process can't start threads while it exits
            return
        if not waiter.has_turn(PATIENCE):
            self._descriptor = None


class _Waiter(threading.Thread):
    """Waits for a lock; closes its file once no one waits for it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="llm-do-turn", daemon=True)
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._locked = threading.Event()
        self._is_left = False

    def run(self) -> None:
        assert fcntl is not None
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._lock:
            if self._is_left:
                os.close(self._descriptor)
            self._locked.set()

    def has_turn(self, seconds: float) -> bool:
        """Wait for the lock; False if it took too long, and the file is the thread's."""
        if self._locked.wait(seconds):
            return True
        with self._lock:
            self._is_left = not self._locked.is_set()
        return not self._is_left

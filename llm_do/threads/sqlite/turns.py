"""Lets the processes that write to a store do so in the order in which they asked.

SQLite alone lets a waiting process look for a free moment less and less often, so that one of many may wait for ever.
Its own lock still decides who writes; this one only keeps the queue, and whoever waits too long continues without it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from llm_do.threads.sqlite.queue_files import QueueFile, open_queue

__all__ = ["Turns"]

PATIENCE = 10.0
"""Seconds to wait for a turn: its holder may have been stopped."""


class Turns:
    """The queue of one store, on a lock file beside it.

    Args:
        path: The lock file, created at the first turn.
        fault: Why there was no queue at the last turn.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: QueueFile | None = None
        self.fault: OSError | None = None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait until it is this process's turn, and keep it meanwhile."""
        place = self._take_place()
        try:
            yield
        finally:
            if place is not None and self._queue is not None:
                with suppress(OSError):
                    self._queue.leave(place)

    def fault_now(self) -> OSError | None:
        """Why no file can be locked at this moment; None if one can. It leaves the queue as it is."""
        try:
            self._queue = self._queue or open_queue(self._path)
            if self._queue is not None:
                self._queue.probe()
        except OSError as error:
            return error
        return None

    def close(self) -> None:
        """Close the lock file."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _take_place(self) -> int | None:
        """Wait for a turn; returns this process's place in the queue, or None if it goes on without one."""
        try:
            self._queue = self._queue or open_queue(self._path)
            if self._queue is None:
                return None
            place = self._queue.line_up()
            self.fault = None
            if self._queue.is_first(place):
                return place
        except OSError as error:  # no file can be created, or there are no locks in this file system
            self.fault = error
            self.close()
            return None
        return self._wait(self._queue, place)

    def _wait(self, queue: QueueFile, place: int) -> int | None:
        """Wait in the kernel, in a thread that can be left behind."""
        waiter = _Waiter(queue, place)
        try:
            waiter.start()
        except RuntimeError:  # since Python 3.12, a process can't start threads while it exits
            return place
        if waiter.is_first(PATIENCE):
            return place
        self._queue = None
        return None


class _Waiter(threading.Thread):
    """Waits for a turn; closes its queue once no one waits for it."""

    def __init__(self, queue: QueueFile, place: int) -> None:
        super().__init__(name="llm-do-turn", daemon=True)
        self._queue = queue
        self._place = place
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._is_left = False

    def run(self) -> None:
        with suppress(OSError):
            self._queue.wait(self._place)
        with self._lock:
            if self._is_left:
                self._queue.close()
            self._arrived.set()

    def is_first(self, seconds: float) -> bool:
        """Wait for the turn; False if it took too long: then the place is given up, and the queue is the thread's."""
        if self._arrived.wait(seconds):
            return True
        with self._lock:
            self._is_left = not self._arrived.is_set()
            if self._is_left:
                with suppress(OSError):  # whoever is next needn't wait for this process, too
                    self._queue.leave(self._place)
        return not self._is_left

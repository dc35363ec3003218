"""Runs jobs in order on one SQLite connection in one thread, which ends after being idle."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs jobs on a connection that it opens for the first one.

    Args:
        connect: Opens the connection.
        idle_seconds: How long the thread waits for another job before it ends.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], idle_seconds: float = 10.0) -> None:
        self._connect = connect
        self._idle_seconds = idle_seconds
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._running = False
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None

    def submit(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue a job; jobs run in the order they are submitted."""
        future: Future[T] = Future()

        def work() -> None:
            try:
                if self._db is None:
                    self._db = self._connect()
                result = job(self._db)
            except BaseException as error:  # noqa: BLE001 (the future raises it in the caller)
                future.set_exception(error)
            else:
                future.set_result(result)

        self._queue(work)
        return future

    async def run(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run a job and wait for it; the job runs even if the caller is cancelled."""
        return await asyncio.wrap_future(_uncancellable(self.submit(job)))

    def close(self) -> None:
        """Close the connection after the queued jobs, and wait until it is closed."""
        done = threading.Event()

        def work() -> None:
            if self._db is not None:
                self._db.close()
                self._db = None
            done.set()

        if threading.current_thread() is self._thread:  # the garbage collector finalized a store on this thread
            work()
            return
        self._queue(work)
        done.wait()

    def _queue(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._jobs.put(work)
            self._waiting += 1
            if self._running:
                return
            self._running = True
            self._thread = threading.Thread(
                target=self._serve, args=(self._idle_seconds,), name="llm-do-store", daemon=True
            )
        try:
            self._thread.start()
        except RuntimeError:  # since Python 3.12, a process can't start threads while it exits
            self._thread = threading.current_thread()
            self._serve(0)

    def _serve(self, idle_seconds: float) -> None:
        while True:
            try:
                work = self._jobs.get(timeout=idle_seconds)
            except queue.Empty:
                with self._lock:
                    if self._waiting == 0:
                        self._running = False
                        return
                continue
            work()
            del work
            with self._lock:
                self._waiting -= 1


def _uncancellable(future: Future[T]) -> Future[T]:
    """Copy a future, so that cancelling the caller doesn't cancel the job."""
    copy: Future[Any] = Future()

    def copy_outcome(done: Future[T]) -> None:
        if not copy.set_running_or_notify_cancel():
            done.exception()
            return
        error = done.exception()
        if error is not None:
            copy.set_exception(error)
        else:
            copy.set_result(done.result())

    future.add_done_callback(copy_outcome)
    return copy

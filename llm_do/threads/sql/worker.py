"""Carries out a store's reads and writes on one connection in one thread, which ends after being idle.

Writes that wait at the same time, of whatever run, go into one transaction with a savepoint each, and all that was
asked for from one event loop wakes it once. A write that has been queued is carried out even if no one waits for it
any more.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from llm_do.errors import StoreError
from llm_do.threads.sql.database import StoreConnection
from llm_do.threads.sql.transactions import Job, Outcome, read_all, same_error, write_all

__all__ = ["Worker"]

T = TypeVar("T")

MOST_AT_ONCE = 256
"""The largest number of writes in one transaction: other processes wait for its end."""


@dataclass(slots=True, eq=False)
class _Request:
    """A job, and the future of whoever waits for it."""

    job: Job
    writes: bool
    future: asyncio.Future[Any] | None = None
    loop: asyncio.AbstractEventLoop | None = None


@dataclass(slots=True, eq=False)
class _Close:
    """The request to close the connection."""

    done: Callable[[], object]


_Item: TypeAlias = "_Request | _Close"


class Worker:
    """Runs jobs on a connection that it opens for the first one.

    Args:
        connect: Opens the connection.
        name: The store's name in messages.
        idle_seconds: How long the thread waits for another job before it ends.
    """

    def __init__(self, connect: Callable[[], StoreConnection], name: str, idle_seconds: float = 10.0) -> None:
        self._connect = connect
        self._name = name
        self._idle_seconds = idle_seconds
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._running = False
        self._thread: threading.Thread | None = None
        self._connection: StoreConnection | None = None

    async def read(self, job: Callable[[Any], T]) -> T:
        """Run a job that only reads, in a transaction that sees one state of the store."""
        return await self._ask(job, writes=False)

    async def write(self, job: Callable[[Any], T]) -> T:
        """Run a job that writes, and wait until it is on disk; it runs even if the caller is cancelled."""
        return await self._ask(job, writes=True)

    def post(self, job: Job) -> None:
        """Queue a write whose outcome no one needs."""
        self._put(_Request(job, writes=True))

    def close(self, patience: float | None = None) -> None:
        """Close the connection after the queued jobs, and wait until it is closed, but no longer than `patience`."""
        if threading.current_thread() is self._thread:  # the garbage collector finalized a store on this thread
            self._disconnect()
            return
        if self._connection is None and self._waiting == 0:
            return
        closed = threading.Event()
        self._put(_Close(closed.set))
        closed.wait(patience)

    async def aclose(self) -> None:
        """Close the connection after the queued jobs, without holding up the event loop."""
        if self._connection is None and self._waiting == 0:
            return
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(closed.set)

        self._put(_Close(wake))
        await closed.wait()

    def forget(self) -> None:
        """Start afresh in a process that has just been forked, without the parent's thread and jobs."""
        self._lock = threading.Lock()
        self._items = queue.SimpleQueue()
        self._waiting, self._running, self._thread = 0, False, None
        if self._connection is not None:  # it is the parent's, and neither usable nor to be closed here
            self._connect = partial(_refuse, self._name, self._connection)
            self._connection = None

    def _ask(self, job: Job, *, writes: bool) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._put(_Request(job, writes, future, loop))
        return future

    def _put(self, item: _Item) -> None:
        with self._lock:
            self._items.put(item)
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
                items = [self._items.get(timeout=idle_seconds)]
            except queue.Empty:
                with self._lock:
                    if self._waiting == 0:
                        self._running = False
                        return
                continue
            with suppress(queue.Empty):
                while len(items) < MOST_AT_ONCE:
                    items.append(self._items.get_nowait())
            self._carry_out(items)
            with self._lock:
                self._waiting -= len(items)
            del items

    def _carry_out(self, items: Sequence[_Item]) -> None:
        requests: list[_Request] = []
        for item in items:
            if isinstance(item, _Request):
                requests.append(item)
                continue
            self._run(requests)
            requests = []
            try:
                self._disconnect()
            finally:
                item.done()
        self._run(requests)

    def _run(self, requests: Sequence[_Request]) -> None:
        """Carry out the writes, then the reads, which so see what was asked for before them."""
        for writes in (True, False):
            chosen = [each for each in requests if each.writes is writes]
            if chosen:
                _deliver(chosen, self._outcomes([each.job for each in chosen], writes=writes))

    def _outcomes(self, jobs: Sequence[Job], *, writes: bool) -> list[Outcome]:
        try:
            if self._connection is None:
                self._connection = self._connect()
            return (write_all if writes else read_all)(self._connection, jobs)
        except BaseException as error:  # noqa: BLE001 (raised wherever an outcome is waited for)
            return same_error(error, len(jobs))
        finally:
            if self._connection is not None and not self._connection.is_intact:
                self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _refuse(name: str, _: StoreConnection) -> StoreConnection:
    raise StoreError(
        f"{name} was in use when this process was forked, so it can't be used here",
        hint="Start processes by `spawn`, or fork while no run is active.",
    )


def _deliver(requests: Sequence[_Request], outcomes: Sequence[Outcome]) -> None:
    """Hand the outcomes to those who wait for them, and wake each event loop once."""
    settled: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Outcome]]] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        if request.future is not None and request.loop is not None:
            settled.setdefault(request.loop, []).append((request.future, outcome))
    for loop, results in settled.items():
        with suppress(RuntimeError):  # the loop is closed, so no one waits
            loop.call_soon_threadsafe(_settle, results)


def _settle(results: Sequence[tuple[asyncio.Future[Any], Outcome]]) -> None:
    for future, outcome in results:
        if future.done():  # its task was cancelled
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.value)

"""`BatchWriter`: writes a run's batches in order, without holding up the run, and says when they are on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from llm_do.errors import LlmDoError, StoreError
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.text.exception_text import exception_text

__all__ = ["BatchWriter"]

SOON = 1.0
"""Seconds that what nothing depends on may wait for more to be written."""

UNNOTICED = 0.1
"""Seconds that may pass before people are shown what has happened."""

PROMPTLY = 0.02
"""Seconds that what is worth keeping may wait: what follows from it comes within a few, and then one batch has both."""


class BatchWriter:
    """Writes the batches of one run, one at a time.

    Args:
        store: Where to write them.
        take: Returns the next batch: what has been queued since the last one.
        put_back: Queues a batch again that couldn't be written.
        written: Called when a batch is on disk.
    """

    def __init__(
        self,
        store: ThreadStore,
        take: Callable[[], Awaitable[Batch]],
        put_back: Callable[[Batch, StoreError], None],
        written: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._take = take
        self._put_back = put_back
        self._when_written = written
        self._queued = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._within = 0.0
        # Who waits for the batch that is being written, and who for the one after it.
        self._current: list[asyncio.Future[None]] = []
        self._next: list[asyncio.Future[None]] = []

    def start(self) -> None:
        """Write what is queued now; what is being written comes first."""
        self._queued = True
        if self._task is None or self._task.done():
            try:
                self._task = asyncio.get_running_loop().create_task(self._write())
            except RuntimeError:  # called from a worker thread: the next batch includes it
                return

    def start_promptly(self) -> None:
        """Write what is queued now in a moment, unless something depends on it before."""
        self._start_within(PROMPTLY)

    def start_soon(self) -> None:
        """Write what is queued now a little later, unless something else is written before."""
        self._start_within(SOON)

    def _start_within(self, seconds: float) -> None:
        self._queued = True
        if self._timer is not None and self._within <= seconds:  # it was set before, so it's due before
            return
        if self._task is not None and not self._task.done():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # called from a worker thread: the next batch includes it
            return
        if self._timer is None or self._timer.when() > loop.time() + seconds:
            self._stop_timer()
            self._timer, self._within = loop.call_later(seconds, self.start), seconds

    def start_unnoticed(self) -> None:
        """Write what is queued now before anyone who waits to see it notices, unless something depends on it before."""
        self._start_within(UNNOTICED)

    async def flush(self) -> None:
        """Wait until everything that has been queued is on disk.

        Raises:
            StoreError: It couldn't be written, and is queued again.
        """
        if self._queued:
            self.start()
            await _wait_in(self._next)
        elif self._task is not None and not self._task.done():
            await _wait_in(self._current)

    async def stop(self) -> None:
        """Wait until nothing is being written; what is queued stays queued, and nobody waits for it any more."""
        self._queued = False
        self._stop_timer()
        while self._task is not None and not self._task.done():
            await asyncio.shield(self._task)
        waiters, self._current, self._next = [*self._current, *self._next], [], []
        for waiter in waiters:
            _settle(waiter, _ended())

    async def _write(self) -> None:
        self._stop_timer()
        while self._queued:
            self._queued = False
            self._current, self._next = self._next, []
            error = await self._written()
            waiters, self._current = self._current, []
            for waiter in waiters:
                _settle(waiter, error)
            if error is not None:
                # The next batch tries again, and so does whoever waits for that one.
                self._queued = True
                if not self._next:
                    return

    async def _written(self) -> StoreError | None:
        """Write one batch; returns the error that prevented it."""
        try:
            batch = await self._take()
        except Exception as error:  # noqa: BLE001 (a message that has no JSON form: whoever waits must hear of it)
            return StoreError(
                f"what has happened can't be recorded: {exception_text(error)}",
                hint="return JSON data from the tool or hook that the error names",
            )
        try:
            await self._store.write(batch)
        except Exception as error:  # noqa: BLE001 (all that wait get the error, whatever a store raises)
            fault = error if isinstance(error, StoreError) else _unexpected(error)
            self._put_back(batch, fault)
            return fault
        self._when_written()
        return None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _unexpected(error: Exception) -> StoreError:
    if isinstance(error, LlmDoError):
        return StoreError(error.message, hint=error.hint)
    return StoreError(
        f"what has happened can't be stored: {exception_text(error)}",
        hint="return only values that a store can hold from tools and hooks",
    )


def _ended() -> StoreError:
    return StoreError(
        "the run ended while one of its calls was still going on",
        hint="Await every call before the code that makes it returns.",
    )


def _wait_in(waiters: list[asyncio.Future[None]]) -> asyncio.Future[None]:
    """Join those who wait for a batch; each has a future of its own, which a cancellation ends for no one else."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiters.append(waiter)
    return waiter


def _settle(waiter: asyncio.Future[None], error: StoreError | None) -> None:
    if waiter.done():  # whoever waited was cancelled
        return
    if error is None:
        waiter.set_result(None)
        return
    waiter.set_exception(error)
    waiter.exception()  # marks it as retrieved: whoever waits may be cancelled before it is

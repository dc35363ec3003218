"""`BatchRun`: carries out a batch in this process, alone or beside others, until nothing is left to do.

Which inputs it gets is decided by `ClaimQueue`; what comes of each, by `InputRuns`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.durable.batch_start import put_inputs
from llm_do.durable.claim_queue import ClaimQueue
from llm_do.durable.input_runs import UNENDED, InputRuns, failure_of
from llm_do.durable.ordered_results import OrderedResults
from llm_do.durable.progress import FailureKind, InputFailure, Progress
from llm_do.errors import RunInterruptedError, StoreError, SuspendedError
from llm_do.runtime.record.results import ErrorRecord, RunResult
from llm_do.runtime.record.store.batches import BatchItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from llm_do.durable.json_lines import JsonLines
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.batches import BatchRecord, BatchStore, BatchSummary
    from llm_do.runtime.steps.durable_run import InFlight

__all__ = ["BatchRun", "ResultForm"]

T = TypeVar("T")

SHOWN_WAITING = 5
"""Runs that wait for a person of which is remembered what for."""

WATCH = 2.0
"""Seconds between two looks at what other processes do with the batch."""


@frozen
class ResultForm(Generic[T]):
    """The form in which results are needed.

    Args:
        of_result: Brings the result of a run that has just ended into it, with the input's place.
        of_item: The same for an input in the store; None if it has no result.
        has_waiting: Whether a run that waits for a person counts as a result.
    """

    of_result: Callable[[int, RunResult], T]
    of_item: Callable[[BatchItem], T | None]
    has_waiting: bool = False


def ignore_failure(failure: InputFailure, kind: FailureKind) -> None:
    """Do nothing about a failure: it is in the results."""


class BatchRun(Generic[T]):
    """The work of one process on a batch.

    Args:
        session: The session whose runs these are.
        store: Where the batch is.
        batch: The batch.
        source: Its inputs.
        form: The form of the results.
        in_flight: What becomes of calls with effects that were running when a run was stopped.
        accept_changes: Whether stopped runs continue although the project's files have changed.
        on_failure: Called when a run has failed, with the kind of its failure.
        deps: The dependencies that each run is given.
    """

    def __init__(
        self,
        session: Session,
        store: BatchStore,
        batch: BatchRecord,
        source: JsonLines,
        form: ResultForm[T],
        *,
        in_flight: InFlight | None = None,
        accept_changes: bool = False,
        on_failure: Callable[[InputFailure, FailureKind], object] = ignore_failure,
        deps: object = None,
    ) -> None:
        self.batch = batch
        self.progress = Progress(batch.total, used=batch.used, budget=batch.budget)
        self._store = store
        self._source = source
        self._form = form
        self._on_failure = on_failure
        self._queue = ClaimQueue(store, batch.id, batch.concurrency // 2 + 1)
        self._results = OrderedResults(store, batch.id, self._read)
        self._news = asyncio.Event()
        self._runs = InputRuns(session, store, batch, in_flight=in_flight, accept_changes=accept_changes, deps=deps)

    def stop(self) -> None:
        """Start no more inputs."""
        self._queue.stop()

    async def results(self) -> AsyncIterator[tuple[int, T]]:
        """Do the work, and yield each result with its input's place, in order, as far as they are complete.

        Raises:
            StoreError: The store can't be written; what has ended is kept.
        """
        working = asyncio.ensure_future(self._work())
        working.add_done_callback(lambda _: self._news.set())
        try:
            while not working.done():
                self._news.clear()
                async for ordinal, result in self._results.ready():
                    yield ordinal, result
                with suppress(TimeoutError):
                    async with asyncio.timeout(WATCH):
                        await self._news.wait()
            await working
            async for ordinal, result in self._results.ready(last=True):
                yield ordinal, result
        finally:
            self.stop()
            if not working.done():
                working.cancel()
                await asyncio.wait([working])
            if not working.cancelled():
                working.exception()

    # -- work

    async def _work(self) -> None:
        """Carry out inputs until nothing is left to do."""
        summary = await self._store.summary(self.batch.id)
        self._count(summary)
        self.progress.earlier = self.progress.done
        loading = asyncio.ensure_future(self._load(summary.last))
        watching = asyncio.ensure_future(self._watch())
        workers = [asyncio.ensure_future(self._worker()) for _ in range(self.batch.concurrency)]
        try:
            await _all_of(loading, *workers)
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            self.progress.reason = self._queue.reason or "stopped"
            await self._queue.close()
            with suppress(StoreError):  # the first error is raised
                self._count(await self._store.summary(self.batch.id))

    async def _load(self, after: int) -> None:
        """Put the inputs on the queue that aren't there yet."""
        async for _ in put_inputs(self._store, self.batch.id, self._source, after=after):
            self._queue.tell()
            if self._queue.reason is not None:
                return
        self._queue.tell_loaded()

    async def _watch(self) -> None:
        """Count what other processes do, if there are any."""
        while True:
            await asyncio.sleep(WATCH)
            with suppress(StoreError):  # a run reports it
                if await self._store.running(self.batch.id) > self.progress.running + self._queue.held:
                    self._count(await self._store.summary(self.batch.id))

    def _count(self, summary: BatchSummary) -> None:
        statuses, progress = summary.statuses, self.progress
        progress.completed = statuses.get("completed", 0)
        progress.failed = sum(count for status, count in statuses.items() if status not in UNENDED | {"completed"})
        progress.waiting = statuses.get("suspended", 0)
        progress.used = summary.used

    async def _worker(self) -> None:
        while (work := await self._queue.next()) is not None:
            if isinstance(work, BatchItem) and work.status == "suspended":
                self.progress.waiting -= 1
            self.progress.running += 1
            try:
                result = await self._runs.carry_out(work)
                if result is not None:
                    self._take_in(work.ordinal, result)
            except RunInterruptedError:
                self.stop()
            finally:
                self.progress.running -= 1
                self._queue.ended(work)
                self._news.set()

    # -- results

    def _read(self, item: BatchItem) -> T | None:
        """What an input has come to by the store; nothing yet if it waited for a person and is continued now."""
        if item.status == "suspended" and self._queue.continues(item):
            return None
        return self._form.of_item(item)

    def _take_in(self, ordinal: int, result: RunResult) -> None:
        """Count what a run has come to, and keep its result."""
        if isinstance(result.error, SuspendedError):
            self.progress.waiting += 1
            if len(self.progress.waits) < SHOWN_WAITING:
                self.progress.waits[result.run_id] = ErrorRecord.of(result.error)
            if self._form.has_waiting:
                self._results.add(ordinal, self._form.of_result(ordinal, result))
            return
        self.progress.used += result.usage.cost_usd or 0.0
        self._results.add(ordinal, self._form.of_result(ordinal, result))
        if result.status == "completed":
            self.progress.completed += 1
            return
        self.progress.failed += 1
        failure = InputFailure(ordinal, result.run_id, result.status, failure_of(result))
        self._on_failure(failure, self.progress.failures.add(ordinal, failure.error))


async def _all_of(*tasks: asyncio.Task[None]) -> None:
    """Wait for tasks; the first error cancels the others, and is raised when they have ended."""
    pending = set(tasks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
    finally:
        await cancel_and_wait(*tasks)

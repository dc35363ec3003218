"""`BatchRun`: carries out a batch in this process, alone or beside others, until nothing is left to do.

Which inputs it gets is decided by `ClaimQueue`; how one run is carried out, by the runtime.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.durable.claim_queue import ClaimQueue
from llm_do.durable.ordered_results import OrderedResults
from llm_do.durable.progress import FailureKind, InputFailure, Progress
from llm_do.errors import (
    InputError,
    ReplayError,
    RunInterruptedError,
    RunTakenError,
    StoreError,
    SuspendedError,
    UsageError,
)
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import ErrorRecord, RunResult
from llm_do.runtime.record.store.batches import BatchInput, BatchItem, ClaimedInput
from llm_do.runtime.session.entries import entry_for, entry_input
from llm_do.runtime.session.execution import Durability, Execution, RunInputs
from llm_do.runtime.session.project_snapshots import take_snapshot
from llm_do.runtime.session.run_starts import new_run, run_again
from llm_do.runtime.steps.run_beginning import RunBeginning
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import result_text
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from llm_do.durable.json_lines import JsonLines
    from llm_do.project.project import Budget
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.batches import BatchRecord, BatchStore, BatchSummary
    from llm_do.runtime.steps.durable_run import InFlight

__all__ = ["UNENDED", "BatchRun", "ResultForm", "denial", "failure_of"]

T = TypeVar("T")

PUT_AT_ONCE = 500
"""Inputs that one transaction puts on the queue."""

UNENDED = frozenset({"queued", "running", "stopped", "suspended"})
"""The states of runs that haven't ended."""

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
    ) -> None:
        self.batch = batch
        self.progress = Progress(batch.total, used=batch.used, budget=batch.budget)
        self._session = session
        self._store = store
        self._source = source
        self._form = form
        self._in_flight: InFlight | None = in_flight
        self._accept_changes = accept_changes
        self._on_failure = on_failure
        self._queue = ClaimQueue(store, batch.id, batch.concurrency // 2 + 1)
        self._results = OrderedResults(store, batch.id, form.of_item)
        self._news = asyncio.Event()
        self._entry = entry_for(session.project, session.registry, batch.entry, [], None)
        self._seal = Seal(redactor().secrets)
        self._snapshot = take_snapshot(session.project, redactor().secrets)
        self._beginning = RunBeginning(
            batch.entry,
            None,
            options=session.config.kept_options,
            project=self._snapshot.digests,
            unkept=self._snapshot.unkept,
            version=_version(),
        )

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
        remaining: Iterator[tuple[int, str]] = ((at, text) for at, text in self._source if at > after)
        while self._queue.reason is None:
            chunk = await asyncio.to_thread(lambda: list(islice(remaining, PUT_AT_ONCE)))
            if not chunk:
                self._queue.tell_loaded()
                return
            await self._store.put(self.batch.id, [BatchInput(at, self._seal.close(text)) for at, text in chunk])
            self._queue.tell()

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
            self.progress.running += 1
            try:
                if isinstance(work, ClaimedInput):
                    await self._begin(work)
                else:
                    await self._continue(work)
            finally:
                self.progress.running -= 1
                self._queue.ended()
                self._news.set()

    async def _begin(self, claim: ClaimedInput) -> None:
        """Carry out the run of an input."""
        try:
            value = entry_input(self._entry, json.loads(self._seal.open(claim.data)))
        except InputError as error:
            await self._end(claim.ordinal, claim.run_id, error, "invalid")
            return
        beginning = replace(self._beginning, input=to_json_data(value)).to_text()
        run = new_run(self._session, claim.run_id, self._entry, budget=self._budget)
        inputs = RunInputs(self.batch.entry, None, {}, Durability(beginning, self._snapshot.row))
        result = await Execution(self._session, run, inputs).carry_out(self._entry, value)
        await self._take_in(claim.ordinal, claim.run_id, result)

    async def _continue(self, item: BatchItem) -> None:
        """Continue a run that was stopped."""
        if item.status == "suspended":
            self.progress.waiting -= 1
        try:
            result = await run_again(
                self._session,
                item.run_id,
                in_flight=self._in_flight,
                accept_changes=self._accept_changes,
                budget=self._budget,
            )
        except ReplayError as error:  # a secret has changed
            await self._end(item.ordinal, item.run_id, error, error.status)
        except UsageError:
            if (await self._state(item.ordinal)).status in ("stopped", "suspended"):
                raise  # or else another process was faster
        else:
            await self._take_in(item.ordinal, item.run_id, result)

    @property
    def _budget(self) -> Budget:
        """What one run may use."""
        budget, each = self._session.config.settings.budget, self.batch.budget_each
        if each is None:
            return budget
        return replace(budget, cost_usd=each if budget.cost_usd is None else min(each, budget.cost_usd))

    # -- results

    async def _take_in(self, ordinal: int, run_id: str, result: RunResult) -> None:
        """Take in how an attempt at a run ended."""
        error = result.error
        if isinstance(error, SuspendedError):
            self.progress.waiting += 1
            if len(self.progress.waits) < SHOWN_WAITING:
                self.progress.waits[run_id] = ErrorRecord.of(error)
            if self._form.has_waiting:
                self._results.add(ordinal, self._form.of_result(ordinal, result))
            return
        if isinstance(error, StoreError | ReplayError | RunInterruptedError):
            status = (await self._state(ordinal)).status
            if status in UNENDED:
                await self._leave(ordinal, run_id, error, status)
                return
        self.progress.used += result.usage.cost_usd or 0.0
        self._results.add(ordinal, self._form.of_result(ordinal, result))
        if result.status == "completed":
            self.progress.completed += 1
        else:
            self._fail(ordinal, result)

    async def _leave(
        self, ordinal: int, run_id: str, error: StoreError | ReplayError | RunInterruptedError, status: str
    ) -> None:
        """Do what follows from an attempt that has stopped without an end."""
        if isinstance(error, RunTakenError):
            return  # another process has it, and its result will be in the store
        if isinstance(error, StoreError):
            raise error
        if isinstance(error, RunInterruptedError):
            self.stop()
        elif status == "stopped":
            await self._end(ordinal, run_id, error, error.status)

    async def _end(self, ordinal: int, run_id: str, error: Exception, status: str) -> None:
        """End a run that can't be carried out."""
        result = RunResult(status=status, output=None, run_id=run_id, error=error)  # type: ignore[arg-type]
        await self._store.end(run_id, status, self._seal.close(result_text(result)))
        self._results.add(ordinal, self._form.of_result(ordinal, result))
        self._fail(ordinal, result)

    def _fail(self, ordinal: int, result: RunResult) -> None:
        self.progress.failed += 1
        failure = InputFailure(ordinal, result.run_id, result.status, failure_of(result))
        self._on_failure(failure, self.progress.failures.add(ordinal, failure.error))

    async def _state(self, ordinal: int) -> BatchItem:
        found = await self._store.items(self.batch.id, after=ordinal - 1, most=1, results=False)
        return found[0]


def failure_of(result: RunResult) -> ErrorRecord:
    """Why a run didn't complete, also where nothing was raised."""
    if result.error is not None:
        return ErrorRecord.of(result.error)
    return denial(result.status, [each.reason for each in result.denials])


def denial(status: str, reasons: Sequence[str]) -> ErrorRecord:
    """Why a run didn't complete that raised nothing: a call was denied for lack of a person."""
    return ErrorRecord("PermissionDeniedError", reasons[0] if reasons else f"the run ended as {status}")


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


def _version() -> str:
    from importlib.metadata import version

    return version("llm-do")

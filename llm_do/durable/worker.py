"""`Worker`: carries out the batches that a store has for one project, beside other workers, until it is stopped.

The rows of the runs are the queue. Each look puts back what has been forgotten: inputs that a process had claimed
and runs that it had begun, once that process is gone. So a worker needs to hear of nothing, and may end at any moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.durable.batch_start import batch_changes, check_recorded, project_texts
from llm_do.durable.input_runs import InputRuns, failure_of
from llm_do.durable.progress import FailureKind, Failures, InputFailure
from llm_do.errors import RunInterruptedError, StoreError, SuspendedError, UsageError
from llm_do.runtime.record.store.batches import BatchItem, BatchRecord, ClaimedInput

if TYPE_CHECKING:
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.record.store.batches import BatchStore

__all__ = ["Worker", "WorkerCounts"]

SOONEST = 0.2
"""Seconds until the next look when the last one has found something."""

LATEST = 2.0
"""Seconds between two looks when nothing changes, or the store can't be reached."""

AGAIN = 1.0
"""Seconds that a place stays free after a run that has lost its store."""

SHOWN = 3
"""Files that a message names."""


@dataclass(slots=True)
class WorkerCounts:
    """What a worker has done.

    Args:
        running: The runs that it carries out now.
        completed: The runs that have completed here.
        failed: Those that have ended in any other way.
        waiting: Those that were left because they wait for a person.
        left: Those that were left before their end, for whoever finds them.
    """

    running: int = 0
    completed: int = 0
    failed: int = 0
    waiting: int = 0
    left: int = 0


class Worker:
    """The work of one process.

    Args:
        session: The session whose runs these are.
        store: Where the batches are.
        concurrency: Runs at once.
        batch: The only batch to work on; None for all that were begun with the project's files as they are.
        until_empty: Whether it ends when nothing is left to do.
        notice: Shows a line, such as that the store can't be reached.
        on_failure: Called when a run has failed, with the batch and the kind of its failure.
    """

    def __init__(
        self,
        session: Session,
        store: BatchStore,
        *,
        concurrency: int,
        batch: str | None = None,
        until_empty: bool = False,
        notice: Callable[[str], object],
        on_failure: Callable[[BatchRecord, InputFailure, FailureKind], object],
    ) -> None:
        self.counts = WorkerCounts()
        self._session = session
        self._store = store
        self._concurrency = concurrency
        self._only = batch
        self._until_empty = until_empty
        self._notice = notice
        self._on_failure = on_failure
        self._project = project_texts(session)
        self._failures = Failures()
        self._batches: dict[str, InputRuns] = {}
        self._refused: dict[str, BatchRecord] = {}
        self._ready: deque[tuple[InputRuns, ClaimedInput | BatchItem]] = deque()
        self._running: dict[asyncio.Task[None], str] = {}
        self._news = asyncio.Event()
        self._stopped = False
        self._fault: str | None = None
        self._unsure: list[str] = []
        self._error: BaseException | None = None

    def stop(self) -> None:
        """Take nothing more; runs stop when what they are doing now has ended, and are left to other workers."""
        self._stopped = self._session.shared.draining = True
        self._news.set()

    async def check(self) -> None:
        """Find out whether there can be work, before any is looked for.

        Raises:
            StoreError: The store can't be reached.
            UsageError: Nothing is recorded, there is no such batch, or it was begun with another project.
        """
        check_recorded(self._session)
        if self._only is None:
            await self._store.open()
            return
        found = await self._store.batch(self._only)
        if found is None:
            raise UsageError(
                f"the store has no batch {self._only!r}",
                hint=f"Begin it with the same --store: `llm-do map FILE --detach --batch {self._only}`.",
            )
        if changed := self._changes(found):
            raise UsageError(
                f"batch {found.id} was begun with another project, or another version of it: {_names(changed)}",
                hint="Start the worker with the files and models that it was begun with, or continue it with these:"
                " `llm-do map FILE --accept-changes`.",
            )

    async def work(self) -> None:
        """Carry out runs until it is stopped or, with `until_empty`, nothing is left to do."""
        pause = SOONEST
        try:
            while not self._stopped:
                self._news.clear()
                found = False
                try:
                    if self._fault is not None:
                        await self._find_again()
                    found = await self._fill()
                    if not found and self._until_empty and not self._running and await self._is_empty():
                        return
                except StoreError as error:
                    self._lose(error)
                pause = SOONEST if found else min(pause * 1.5, LATEST)
                await self._wait(pause)
            while self._running:
                await asyncio.wait(self._running)
            if self._error is not None:
                raise self._error
        finally:
            await cancel_and_wait(*self._running)
            with suppress(StoreError):  # once this process is gone, others find them
                await self._store.give_back(self._claimed())

    # -- the queue

    async def _fill(self) -> bool:
        """Start runs as far as there is room; returns whether there were any."""
        if len(self._running) < self._concurrency and not self._ready:
            await self._look()
        found = False
        while self._ready and len(self._running) < self._concurrency and not self._stopped:
            runs, work = self._ready.popleft()
            self._start(runs, work)
            found = True
        return found

    def _start(self, runs: InputRuns, work: ClaimedInput | BatchItem) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._carry_out(runs, work))
        self._running[task] = work.run_id
        self.counts.running += 1
        task.add_done_callback(self._end)
        return task

    async def _look(self) -> None:
        """Look for work: runs that were stopped first, then inputs, and a few more than there is room for."""
        room = self._concurrency - len(self._running) + self._concurrency // 2
        for batch in await self._store.open():
            runs = self._runs_of(batch)
            if runs is None:
                continue
            busy = set(self._running.values())
            begun = await self._store.left(batch.id, waiting=False)
            self._ready.extend((runs, each) for each in begun[:room] if each.run_id not in busy)
            if len(self._ready) < room:
                taken = await self._store.take(batch.id, room - len(self._ready))
                self._ready.extend((runs, each) for each in taken.inputs)
            if len(self._ready) >= room:
                return

    def _runs_of(self, batch: BatchRecord) -> InputRuns | None:
        """The runs of a batch; None if it isn't for this worker."""
        if self._only not in (None, batch.id):
            return None
        if changed := self._changes(batch):
            known = self._refused.get(batch.id)
            self._refused[batch.id] = batch
            if known is None or known.project != batch.project:
                self._notice(f"batch {batch.id} is left alone: it was begun with other files: {_names(changed)}")
            return None
        known = self._batches.get(batch.id)
        if known is None or known.batch.budget_each != batch.budget_each:
            # The project is the batch's, so changes since some of its runs began have been accepted for the batch.
            known = self._batches[batch.id] = InputRuns(self._session, self._store, batch, accept_changes=True)
        return known

    def _changes(self, batch: BatchRecord) -> list[str]:
        return batch_changes(batch, *self._project)

    async def _is_empty(self) -> bool:
        """Whether nothing is left to do: what other processes have may still come back."""
        for batch_id in [self._only] if self._only is not None else self._batches:
            if await self._store.running(batch_id):
                return False
        return True

    def _claimed(self) -> list[str]:
        """The claimed inputs whose runs haven't begun."""
        return [work.run_id for _, work in self._ready if isinstance(work, ClaimedInput)]

    # -- runs

    async def _carry_out(self, runs: InputRuns, work: ClaimedInput | BatchItem) -> None:
        """Carry out one run; without its store, it is left to whoever finds it."""
        try:
            result = await runs.carry_out(work)
        except RunInterruptedError:
            self.counts.left += 1
        except StoreError as error:
            self.counts.left += 1
            self._lose(error)
            await asyncio.sleep(AGAIN)
        else:
            if result is not None:
                self._count(runs.batch, work.ordinal, result)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self.counts.running -= 1
        self._news.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self.stop()

    def _count(self, batch: BatchRecord, ordinal: int, result: RunResult) -> None:
        if isinstance(result.error, SuspendedError):
            self.counts.waiting += 1
        elif result.status == "completed":
            self.counts.completed += 1
        else:
            self.counts.failed += 1
            failure = InputFailure(ordinal, result.run_id, result.status, failure_of(result))
            self._on_failure(batch, failure, self._failures.add(ordinal, failure.error))

    # -- the store

    def _lose(self, error: StoreError) -> None:
        """Say once that the store can't be reached; whether what was claimed is still this process's isn't known."""
        if self._fault is None and not self._stopped:
            self._notice(f"{error.message}; trying again")
        self._fault = error.message
        self._unsure += self._claimed()
        self._ready.clear()

    async def _find_again(self) -> None:
        """Try a store that couldn't be reached, even if there is no room for another run; report that it has answered.

        Raises:
            StoreError: It still can't be reached.
        """
        await self._store.open()
        unsure = self._unsure[:]
        await self._store.give_back(unsure)
        del self._unsure[: len(unsure)]
        self._fault = None
        self._notice("the store can be reached again")

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()


def _names(changed: list[str]) -> str:
    """The first few of the names of what has changed."""
    more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    return ", ".join(changed[:SHOWN]) + more

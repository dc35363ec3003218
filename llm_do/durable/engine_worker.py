"""`EngineWorker`: a worker whose runs are started by an existing engine, which decides when and on which machine.

The rows of the store stay the truth: what is due is read from them, put on the engine's queue, and claimed in its row
when the engine starts it. So whatever the engine forgets is put there again, and what it repeats finds nothing to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from llm_do._startup.frozen import frozen
from llm_do.durable.worker import Worker
from llm_do.errors import StoreError

if TYPE_CHECKING:
    from llm_do.durable.input_runs import InputRuns
    from llm_do.runtime.record.store.batches import BatchItem, ClaimedInput

__all__ = ["Engine", "EngineWorker", "QueuedRun"]

AHEAD = 200
"""Runs that are on the engine's queue at once: more than its workers begin between two looks."""

EVERY = 0.5
"""Seconds between two looks at the rows and the queue."""


@frozen
class QueuedRun:
    """A run on an engine's queue, or one that a process was told to carry out.

    Args:
        run_id: The run.
        item: The engine's id of this entry.
        process: The process that was told to; None while it waits.
    """

    run_id: str
    item: str
    process: str | None


class Engine(Protocol):
    """What starts runs by their ids."""

    async def start(self, process: str, carry_out: Callable[[str], Awaitable[None]]) -> None:
        """Begin to take runs from the queue, as a process with this id, which nothing else has."""
        ...

    async def queued(self) -> list[QueuedRun]:
        """Return what is on the queue, and what processes were told to carry out."""
        ...

    async def put(self, run_ids: Sequence[str]) -> None:
        """Put runs on the queue, unless they are there."""
        ...

    async def drop(self, items: Collection[str]) -> None:
        """Forget entries: the processes that were told to carry them out are gone."""
        ...

    async def stop(self) -> None:
        """Take nothing more; entries of this process that haven't ended are left as they are."""
        ...


class EngineWorker(Worker):
    """The work of one process, as an engine hands it out.

    Args:
        engine: The engine.
        options: Those of `Worker`.
    """

    def __init__(self, engine: Engine, **options: Any) -> None:
        super().__init__(**options)
        self._engine = engine
        self._process: str | None = None
        self._places = asyncio.Semaphore(self._concurrency)
        self._over = asyncio.Event()
        self._looked = 0.0

    async def work(self) -> None:
        """Carry out what the engine starts, until it is stopped or, with `until_empty`, nothing is left to do."""
        try:
            await super().work()
        finally:
            self._over.set()
            with suppress(StoreError):  # another process finds out that this one is gone
                await self._engine.stop()

    async def _fill(self) -> bool:
        """Put on the engine's queue what is due by the rows; returns whether anything is."""
        await asyncio.sleep(max(0.0, self._looked + EVERY - time.monotonic()))
        self._looked = time.monotonic()
        await self._join()
        due: list[str] = []
        for batch in await self._store.open():
            if self._runs_of(batch) is not None and len(due) < AHEAD:
                due += [each.run_id for each in await self._store.due(batch.id, AHEAD - len(due))]
        queued = await self._engine.queued()
        gone = await self._store.gone({each.process for each in queued if each.process is not None})
        lost = [each.item for each in queued if each.process in gone]
        if lost:
            await self._engine.drop(lost)
        there = {each.run_id for each in queued if each.process not in gone}
        new = [run_id for run_id in due if run_id not in there]
        if new and not self._stopped:
            await self._engine.put(new)
        return bool(due)

    async def _join(self) -> None:
        """Take part in the engine's work, under the id by which the store knows whether this process is alive."""
        process = await self._store.owner()
        if process == self._process:
            return
        if self._process is not None:
            self._process = None
            await self._engine.stop()
        await self._engine.start(process, self._carry_out_queued)
        self._process = process

    async def _carry_out_queued(self, run_id: str) -> None:
        """Carry out a run that the engine starts, if its row lets this process have it."""
        async with self._places:
            if self._stopped:
                await self._over.wait()  # ending at once would have it put on the queue again, for this same process
                return
            try:
                found = await self._claim(run_id)
            except StoreError as error:
                self._lose(error)
                return
            if found is not None:
                await asyncio.wait([self._start(*found)])

    async def _claim(self, run_id: str) -> tuple[InputRuns, ClaimedInput | BatchItem] | None:
        found = await self._store.find(run_id)
        if found is None:
            return None
        batch_id, item = found
        runs = self._batches.get(batch_id)
        if runs is None:
            batch = await self._store.batch(batch_id)
            runs = self._runs_of(batch) if batch is not None else None
        if runs is None:
            return None
        if item.status == "queued":
            taken = await self._store.take(batch_id, 1, run_id)
            return (runs, taken.inputs[0]) if taken.inputs else None
        return (runs, item) if item.status in ("stopped", "suspended") else None

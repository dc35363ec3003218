"""`SqlBatches`: the batches of a store, and which inputs this process has claimed.

The SQL is in `durable.batch_rows`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from llm_do.runtime.record.store.batches import BatchInput, BatchItem, BatchRecord, BatchSummary, Taken
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import batch_rows

if TYPE_CHECKING:
    from llm_do.threads.sql.open_store import OpenStore

__all__ = ["SqlBatches"]

T = TypeVar("T")


class SqlBatches:
    """The batches of one store.

    Args:
        opened: What this process has of the store.
        recover: Deals with the runs whose process is gone, inside a transaction.
    """

    def __init__(self, opened: OpenStore, recover: Callable[[Database], object]) -> None:
        self._opened = opened
        self._recover = recover

    # -- claims

    async def put(self, batch_id: str, inputs: Sequence[BatchInput]) -> None:
        """Put inputs on the queue; one that is there already stays as it is."""
        await self._write(lambda db: batch_rows.put(db, batch_id, inputs))

    async def take(self, batch_id: str, most: int, run_id: str | None = None) -> Taken:
        """Claim inputs that no process has, the first ones first."""
        opened = self._opened
        with opened.claiming:
            # Until the claims are known, a recovery in the same process must not take them for those of a dead one.
            opened.taking += 1
        try:
            taken = await self._write(lambda db: batch_rows.take(db, batch_id, most, opened.owners.claim(), run_id))
            opened.claimed.update(each.run_id for each in taken.inputs)
            return taken
        except asyncio.CancelledError:  # the job still claims them, and nothing would begin their runs
            opened.worker.post(self._recover)
            raise
        finally:
            with opened.claiming:
                opened.taking -= 1

    async def alive(self, run_id: str) -> bool:
        """Whether a process that is alive has a run."""
        opened = self._opened
        query = "SELECT owner FROM runs WHERE id = ? AND status = 'running'"

        def has_owner(db: Database) -> bool:
            row = db.execute(query, (run_id,)).fetchone()
            if row is None:
                return False
            if row[0] == opened.owners.own:  # a lock of one's own is granted again, so it says nothing
                return run_id in opened.active or run_id in opened.claimed
            return opened.owners.alive(db, row[0])

        return await self._read(has_owner)

    async def give_back(self, run_ids: Sequence[str]) -> None:
        """Put claimed inputs back on the queue whose runs haven't begun."""
        own = [each for each in run_ids if each in self._opened.claimed]
        if own:
            owner = self._opened.owners.own
            await self._write(lambda db: batch_rows.give_back(db, own, owner))
            self._opened.claimed.difference_update(own)

    async def owner(self) -> str:
        """Mark this process as alive, and return the id that its runs have."""
        return await self._write(lambda _: self._opened.owners.claim())

    async def gone(self, owners: Collection[str]) -> set[str]:
        """Which of these processes aren't alive."""
        alive = self._opened.owners.alive
        return await self._read(lambda db: {each for each in owners if not alive(db, each)}) if owners else set()

    # -- batches

    async def begin(self, batch: BatchRecord) -> BatchRecord:
        """Keep a batch; returns the one that has the id already, if there is one."""
        return await self._write(lambda db: batch_rows.add(db, batch))

    async def update(self, batch: BatchRecord) -> None:
        """Save a batch's project, options, budgets and concurrency."""
        await self._write(lambda db: batch_rows.save(db, batch))

    async def batch(self, batch_id: str) -> BatchRecord | None:
        """Return a batch by its id."""
        return await self._read(lambda db: batch_rows.read(db, batch_id))

    async def summary(self, batch_id: str) -> BatchSummary:
        """Count the runs of a batch, after dealing with those whose process is gone."""
        return await self._after_recovery(lambda db: batch_rows.summary(db, batch_id))

    async def items(self, batch_id: str, *, after: int, most: int, results: bool = True) -> list[BatchItem]:
        """Return where the inputs after a place are, in order."""
        return await self._read(lambda db: batch_rows.items(db, batch_id, after, most, results=results))

    async def open(self) -> list[BatchRecord]:
        """Return the batches with something to do, the oldest first, after dealing with runs whose process is gone."""
        return await self._after_recovery(batch_rows.with_work)

    async def left(self, batch_id: str, *, waiting: bool = True) -> list[BatchItem]:
        """Return the begun runs of a batch that no process has, in order; also those that wait for a person."""
        return await self._read(lambda db: batch_rows.left(db, batch_id, waiting=waiting))

    async def due(self, batch_id: str, most: int) -> list[BatchItem]:
        """Return runs that could be carried out now: those that were left, then inputs as far as the budget allows."""
        return await self._read(lambda db: batch_rows.due(db, batch_id, most))

    async def find(self, run_id: str) -> tuple[str, BatchItem] | None:
        """Return the batch and the state of a run, if it belongs to one."""
        return await self._read(lambda db: batch_rows.find(db, run_id))

    async def running(self, batch_id: str) -> int:
        """Count the runs of a batch that processes have, after dealing with those whose process is gone."""
        return await self._after_recovery(lambda db: batch_rows.running(db, batch_id))

    async def has_claimed(self, run_id: str) -> bool:
        """Whether this process has claimed an input whose run hasn't begun."""
        return await self._read(lambda db: batch_rows.is_claimed(db, run_id, self._opened.owners.own))

    async def end(self, run_id: str, status: str, result: str) -> None:
        """End a run of a batch that this process has claimed, or that is stopped, without carrying it out."""
        await self._write(lambda db: batch_rows.end(db, run_id, status, result))
        self._opened.claimed.discard(run_id)

    async def retry(self, batch_id: str) -> int:
        """Put the inputs whose runs haven't completed on the queue again, each with a new run."""
        return await self._write(lambda db: batch_rows.retry(db, batch_id))

    # -- transactions

    async def _after_recovery(self, job: Callable[[Database], T]) -> T:
        def work(db: Database) -> T:
            self._recover(db)
            return job(db)

        return await self._write(work)

    async def _read(self, job: Callable[[Any], T]) -> T:
        return await self._opened.worker.read(job)

    async def _write(self, job: Callable[[Any], T]) -> T:
        return await self._opened.worker.write(job)

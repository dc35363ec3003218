"""`Retention`: deletes threads, and what is old in a store, while other processes go on using it.

The SQL is in `runs.pruning` and `thread_deletion`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.threads.sql import rows, thread_deletion
from llm_do.threads.sql.durable import project_rows
from llm_do.threads.sql.kept_files import drop_kept_files
from llm_do.threads.sql.portions import Portions
from llm_do.threads.sql.runs import pruning
from llm_do.threads.sql.store_errors import thread_conflict
from llm_do.threads.sql.thread_deletion import DeletedThreads

if TYPE_CHECKING:
    from llm_do.threads.sql.database import Database
    from llm_do.threads.sql.open_store import OpenStore

__all__ = ["Retention"]


class Retention:
    """What is deleted in one store.

    Args:
        opened: What this process has of the store.
        recover: Finishes the runs whose process is gone.
    """

    def __init__(self, opened: OpenStore, recover: Callable[[], Awaitable[object]]) -> None:
        self._opened = opened
        self._worker = opened.worker
        self._recover = recover

    async def prune_runs(self, before: float, *, dry_run: bool) -> int:
        """Delete the record of runs that ended before a time, and return how many there were."""
        await self._recover()
        kept = await self._worker.read(lambda db: pruning.young_batches(db, before))
        pruned: list[str] = []
        after: tuple[float, str] | None = (-1.0, "")

        def prune(db: Database, most: int, after: tuple[float, str]) -> pruning.Portion:
            portion = pruning.old_runs(db, before, kept, after, most)
            if not dry_run:
                pruning.delete(db, portion.runs)
            return portion

        portions = Portions(self._worker.read if dry_run else self._worker.write)
        while after is not None:
            portion = await portions.carry_out(partial(prune, after=after))
            pruned += portion.runs
            after = portion.last
        if pruned and not dry_run:
            await self._worker.write(partial(pruning.drop_empty_batches, before=before))
            await self._worker.write(project_rows.drop_unused_projects)
            await self._drop_kept(pruned, "the runs are deleted, but what is kept to undo them isn't")
        return len(pruned)

    async def delete_thread(self, thread_id: str, user_id: str | None, expected: str | None) -> bool:
        """Delete a thread of a user, and whatever is its own; returns whether there was one."""

        def delete(db: Database) -> list[str] | None:
            record = rows.thread_record(db, user_id, thread_id)
            if expected is not None and (record is None or record.revision != expected):
                raise thread_conflict(thread_id)
            return thread_deletion.delete_thread(db, record) if record is not None else None

        runs = await self._worker.write(delete)
        if runs:
            await self._drop_kept(runs, f"thread {thread_id!r} is deleted, but what is kept to undo its runs isn't")
        return runs is not None

    async def count_old_threads(self, before: float) -> int:
        """Count the threads that `prune_threads` would delete."""
        return await self._worker.read(lambda db: thread_deletion.count_old_threads(db, before))

    async def prune_threads(self, before: float, seconds: float | None) -> int:
        """Delete the threads that weren't changed since a time, and return how many there were.

        After so many seconds it ends, even if there are more of them.
        """
        await self._recover()
        until = None if seconds is None else time.monotonic() + seconds
        threads, runs = 0, list[str]()

        def prune(db: Database, most: int) -> DeletedThreads:
            return thread_deletion.delete_old_threads(db, before, most)

        portions = Portions(self._worker.write)
        while until is None or time.monotonic() < until:
            portion = await portions.carry_out(prune)
            threads += portion.threads
            runs += portion.runs
            if portion.is_last:
                break
        if runs:
            await self._drop_kept(runs, "the threads are deleted, but what is kept to undo their runs isn't")
        return threads

    async def _drop_kept(self, runs: list[str], what: str) -> None:
        await run_in_worker(drop_kept_files, tuple(self._opened.roots), runs, what)

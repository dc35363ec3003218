"""Deletes the threads that no one has continued for `threads.keep_days`, at the end of runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do.errors import StoreError
from llm_do.threads.sql.sql_store import SqlStore

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = ["ThreadExpiry"]

DAY = 86_400.0

EVERY = 3600.0
"""Seconds after which a process looks again for threads that are old by now."""

PATIENCE = 0.5
"""Seconds that the end of a run may take longer; what is left then, the end of the next one deletes."""


class ThreadExpiry:
    """How long the threads of one project are kept.

    Args:
        keep_days: The days; None to keep threads for ever.
        notice: Called with what a person should know.

    Example:
        >>> import asyncio
        >>> from llm_do.threads import memory_store
        >>> asyncio.run(ThreadExpiry(30, print).delete_old_threads(memory_store()))
    """

    def __init__(self, keep_days: int | None, notice: Callable[[str], None]) -> None:
        self._keep_days = keep_days
        self._notice = notice
        self._next = 0.0

    async def delete_old_threads(self, store: ThreadStore) -> None:
        """Delete some threads if any are old; a store of another kind has to do so itself."""
        now = time.monotonic()
        if self._keep_days is None or now < self._next:
            return
        self._next = now + EVERY  # also for runs that end meanwhile
        if not isinstance(store, SqlStore):
            self._keep_days = None
            self._notice(f"threads.keep_days has no effect: {type(store).__name__} deletes no old threads")
            return
        before = time.time() - self._keep_days * DAY
        try:
            if not await store.prune_threads(before, dry_run=True):
                return
            count = await store.prune_threads(before, seconds=PATIENCE)
            left = await store.prune_threads(before, dry_run=True)
        except StoreError as error:
            self._notice(f"old threads aren't deleted: {error.message}")
            return
        if left:
            self._next = now
        if count:
            days = "a day" if self._keep_days == 1 else f"{self._keep_days} days"
            many = "1 thread that wasn't" if count == 1 else f"{count} threads that weren't"
            more = f"; {left} more will be deleted at the end of later runs" if left else ""
            self._notice(f"deleted {many} continued for {days} (threads.keep_days){more}")

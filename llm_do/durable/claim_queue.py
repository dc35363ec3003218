"""`ClaimQueue`: hands a process the inputs of a batch one by one, those first whose runs were stopped.

Other processes may work on the same batch, and put, take and end runs at any moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from llm_do.runtime.record.store.batches import BatchItem, ClaimedInput

if TYPE_CHECKING:
    from llm_do.durable.progress import Reason
    from llm_do.runtime.record.store.batches import BatchStore

__all__ = ["ClaimQueue"]

POLL = 0.2
"""Seconds between two looks at a batch whose other runs are those of other processes."""

SLOWEST_POLL = 2.0
"""Seconds between two looks while runs of this process are active, or nothing changes."""


class ClaimQueue:
    """What is left to do of one batch.

    Args:
        store: Where the batch is.
        batch_id: The batch.
        ahead: The number of inputs to claim at once.
    """

    def __init__(self, store: BatchStore, batch_id: str, ahead: int) -> None:
        self._store = store
        self._batch_id = batch_id
        self._ahead = ahead
        self._ready: deque[ClaimedInput | BatchItem] = deque()
        self._tried: set[str] = set()
        """Begun runs that this process has continued already, and which wait for something else now."""
        self._continued: set[str] = set()
        """Those of them that wait to be continued here, or are being continued."""
        self._begun_looked_for = False
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()
        self._loading = True
        self._active = 0
        self.reason: Reason | None = None

    @property
    def held(self) -> int:
        """The number of inputs that this process has claimed and not handed out."""
        return sum(isinstance(each, ClaimedInput) for each in self._ready)

    def tell_loaded(self) -> None:
        """Take note that all inputs are on the queue."""
        self._loading = False
        self.tell()

    def tell(self) -> None:
        """Look again: there are more inputs, or a run has ended."""
        self._news.set()

    def stop(self) -> None:
        """Hand nothing out any more."""
        self.reason = self.reason or "stopped"
        self.tell()

    async def next(self) -> ClaimedInput | BatchItem | None:
        """Return an input that this process has claimed, or a run that was stopped; None when nothing is left."""
        async with self._lock:
            pause = POLL
            while self.reason is None:
                if not self._ready:
                    self._news.clear()
                    await self._look()
                if self.reason is None and self._ready:
                    self._active += 1
                    return self._ready.popleft()
                if self.reason is None:
                    await self._wait(SLOWEST_POLL if self._active else pause)
                    pause = min(pause * 1.5, SLOWEST_POLL)
        return None

    def ended(self, work: ClaimedInput | BatchItem) -> None:
        """Take note that what `next` returned isn't worked on any more."""
        self._active -= 1
        self._continued.discard(work.run_id)
        self.tell()

    def continues(self, item: BatchItem) -> bool:
        """Whether this process continues a begun run, or is about to: its state in the store isn't what comes of it."""
        return self.reason is None and (not self._begun_looked_for or item.run_id in self._continued)

    async def close(self) -> None:
        """Give back what has been claimed and not handed out."""
        claimed = [each.run_id for each in self._ready if isinstance(each, ClaimedInput)]
        self._ready.clear()
        await self._store.give_back(claimed)

    async def _look(self) -> None:
        """Look for something to do, and find out whether there will be anything."""
        if not self._begun_looked_for:
            await self._find_begun()
            self._begun_looked_for = True
            if self._ready:
                return
        taken = await self._store.take(self._batch_id, self._ahead)
        self._ready.extend(taken.inputs)
        if taken.inputs or self._loading or self._active:
            return
        # Nothing runs here. Runs of other processes may still fail to end, or leave something of the budget.
        if await self._store.running(self._batch_id):
            await self._find_begun()
            return
        await self._find_begun()
        if self._ready:
            return
        taken = await self._store.take(self._batch_id, self._ahead)
        self._ready.extend(taken.inputs)
        if not taken.inputs:
            self.reason = "budget" if taken.over_budget else "done"

    async def _find_begun(self) -> None:
        for item in await self._store.left(self._batch_id):
            if item.run_id not in self._tried:
                self._tried.add(item.run_id)
                self._continued.add(item.run_id)
                self._ready.append(item)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

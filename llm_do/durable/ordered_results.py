"""`OrderedResults`: the results of a batch in the order of its inputs, as far as they are complete.

Few results are in memory at a time: those that have just ended, up to a number; all others are read from the store.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from llm_do.runtime.record.store.batches import BatchItem, BatchStore

__all__ = ["OrderedResults"]

T = TypeVar("T")

PAGE = 200
"""Inputs that are looked up at once."""

MOST_RECENT = 1000
"""Results that are kept while an earlier one isn't there yet."""

AGAIN = 0.5
"""Seconds between two looks at an input that another process may have."""


class OrderedResults(Generic[T]):
    """Results in order, each in the form that the reader needs.

    Args:
        store: Where the batch is.
        batch_id: The batch.
        read: Brings an item of the store into that form; None if it has no result yet.
    """

    def __init__(self, store: BatchStore, batch_id: str, read: Callable[[BatchItem], T | None]) -> None:
        self._store = store
        self._batch_id = batch_id
        self._read = read
        self._recent: dict[int, T] = {}
        self._upcoming: deque[BatchItem] = deque()
        self._head = 0
        self._looked = -AGAIN

    def add(self, ordinal: int, result: T) -> None:
        """Take a result of this process; it may have been added before."""
        if ordinal > self._head and len(self._recent) < MOST_RECENT:
            self._recent[ordinal] = result

    async def ready(self, *, last: bool = False) -> AsyncIterator[tuple[int, T]]:
        """Yield the next results up to the first that isn't there; `last` looks into the store in any case."""
        while True:
            result = self._next()
            if result is None:
                # Another process may have ended it, or this one when there were too many to keep.
                if not last and time.monotonic() - self._looked < AGAIN and self._upcoming:
                    return
                await self._look()
                result = self._next()
                if result is None:
                    return
            self._head = self._upcoming.popleft().ordinal
            yield self._head, result

    def _next(self) -> T | None:
        if not self._upcoming:
            return None
        item = self._upcoming[0]
        result = self._recent.pop(item.ordinal, None)
        return result if result is not None else self._read(item)

    async def _look(self) -> None:
        """Look up what follows."""
        self._looked = time.monotonic()
        self._upcoming = deque(await self._store.items(self._batch_id, after=self._head, most=PAGE))

"""`SqlMemories`: the memories of a store.

The SQL is in `memory_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do.runtime.record.store.memories import (
    Memory,
    MemoryFilter,
    MemoryOwner,
    MemoryStep,
    Recalled,
    Remembered,
)
from llm_do.threads.sql.memories import memory_rows

if TYPE_CHECKING:
    from llm_do.threads.sql.open_store import OpenStore

__all__ = ["SqlMemories"]


class SqlMemories:
    """The memories of one store.

    Args:
        opened: What this process has of the store.
    """

    def __init__(self, opened: OpenStore) -> None:
        self._opened = opened

    @property
    def lasts(self) -> bool:
        """Whether memories outlive this process."""
        return self._opened.closes

    async def remember(self, memory: Memory, most: int, step: MemoryStep | None = None) -> Remembered:
        """Keep a memory, unless there are as many as there may be."""
        return await self._opened.worker.write(lambda db: memory_rows.remember(db, memory, most, step))

    async def recall(self, owners: Sequence[MemoryOwner], search: str | None, most: int) -> Recalled:
        """Find memories of these owners."""
        return await self._opened.worker.read(lambda db: memory_rows.recall(db, owners, search, most))

    async def forget(self, owner: MemoryOwner, id: str, step: MemoryStep | None = None) -> bool:
        """Delete a memory; returns whether there was one."""
        return await self._opened.worker.write(lambda db: memory_rows.forget(db, owner, id, step))

    async def find(self, filter: MemoryFilter, most: int | None = None) -> Recalled:
        """Find memories of any owner."""
        return await self._opened.worker.read(lambda db: memory_rows.find(db, filter, most))

    async def delete(self, memories: Sequence[Memory]) -> int:
        """Delete memories; returns how many there still were."""
        return await self._opened.worker.write(lambda db: memory_rows.delete(db, memories))

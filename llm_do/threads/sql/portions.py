"""Carries out a long change in small transactions, whose size follows from the time that they take.

While one of them is under way, every other process that writes to the store waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from llm_do.threads.sql.database import Database

__all__ = ["Portions", "next_size"]

T = TypeVar("T")

AIM = 0.05
"""Seconds that a transaction should take, with its commit."""

PAUSE = 0.01
"""Seconds between two transactions, in which a process that waits gets its turn; more where they take longer."""

FIRST = 20
"""The size of the first transaction."""

LEAST, MOST = 5, 500
"""Limits of a size: waiting for the disk takes its time however small a transaction is."""


class _Write(Protocol):
    def __call__(self, job: Callable[[Database], T], /) -> Awaitable[T]: ...


class Portions:
    """Carries out the transactions of one long change, one after another.

    Args:
        write: Carries out a transaction.
    """

    def __init__(self, write: _Write) -> None:
        self._write = write
        self._size = FIRST

    async def carry_out(self, change: Callable[[Database, int], T]) -> T:
        """Make a part of the change, of a given size at most, and let others write before the next one."""
        size, begun = self._size, 0.0

        def timed(db: Database) -> T:
            nonlocal begun
            begun = time.perf_counter()  # not before: others may have had their turns first
            return change(db, size)

        value = await self._write(timed)
        seconds = time.perf_counter() - begun
        self._size = next_size(size, seconds)
        await asyncio.sleep(max(PAUSE, min(seconds, AIM) / 2))
        return value


def next_size(size: int, seconds: float) -> int:
    """The size of the next transaction, given how long one of a size took.

    Example:
        >>> next_size(100, 0.05), next_size(100, 0.1), next_size(100, 3.0), next_size(100, 0.001)
        (100, 50, 50, 150)
    """
    factor = min(1.5, max(0.5, AIM / max(seconds, 1e-6)))
    return min(MOST, max(LEAST, round(size * factor)))

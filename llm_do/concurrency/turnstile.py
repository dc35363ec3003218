"""A turnstile: lets a limited number in at a time, and only one at each turn of the event loop."""

from __future__ import annotations

import asyncio
from types import TracebackType

__all__ = ["Turnstile"]


class Turnstile:
    """Limits what runs at a time, and spreads its beginnings, so that thousands of jobs don't hold up the event loop.

    Example:
        >>> async def work(turnstile):
        ...     async with turnstile:
        ...         return 1
        >>> async def both(turnstile):
        ...     return await asyncio.gather(work(turnstile), work(turnstile))
        >>> asyncio.run(both(Turnstile(1)))
        [1, 1]
    """

    __slots__ = ("_busy", "_entrance", "_limit", "_slots")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._busy = 0
        self._slots: asyncio.Semaphore | None = None
        self._entrance: asyncio.Lock | None = None

    async def __aenter__(self) -> None:
        if self._slots is None or self._entrance is None:
            self._slots, self._entrance = asyncio.Semaphore(self._limit), asyncio.Lock()
        await self._slots.acquire()
        self._busy += 1
        if self._busy == 1:  # most often there is only one
            return
        try:
            async with self._entrance:
                await asyncio.sleep(0)
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._busy -= 1
        assert self._slots is not None
        self._slots.release()

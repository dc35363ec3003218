"""`OpenTasks`: the tasks in which a run's code makes calls, so that none of them outlives the run.

`asyncio.gather` leaves the others running when one of its awaitables fails, and nothing waits for a task that its
maker has forgotten.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from llm_do.concurrency.event_loops import cancel_and_wait

__all__ = ["OpenTasks"]

T = TypeVar("T")


class OpenTasks:
    """Tasks of one event loop in which something is going on."""

    __slots__ = ("_loop", "_tasks")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: Counter[asyncio.Task[Any]] = Counter()

    @contextmanager
    def open(self) -> Generator[None]:
        """Make the current task one of them for as long as the context is open."""
        task = asyncio.current_task()
        if task is None or task.get_loop() is not self._loop:
            yield
            return
        self._tasks[task] += 1
        try:
            yield
        finally:
            self._tasks[task] -= 1
            if not self._tasks[task]:
                del self._tasks[task]

    async def outlast(self, work: Coroutine[Any, Any, T], report: Callable[[int], None]) -> T:
        """Do work, and then cancel the other tasks that are still open.

        Args:
            work: The work.
            report: Is called with their number if the work has succeeded.

        Returns:
            What the work returns.
        """
        try:
            result = await work
        except BaseException:
            await self._cancel()
            raise
        if left := await self._cancel():
            report(left)
        return result

    async def _cancel(self) -> int:
        left = [task for task in self._tasks if task is not asyncio.current_task() and not task.done()]
        await cancel_and_wait(*left)
        return len(left)

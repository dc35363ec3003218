"""Running several things at once and taking their outcomes in declared order. Knows nothing of flows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.errors import RunError

__all__ = ["gather_in_order"]

Job = Callable[[], Awaitable[Any]]


async def gather_in_order(works: Sequence[Job], *, ends: Callable[[BaseException], bool]) -> list[Any]:
    """Run all at once; no order of completion shows in what comes out.

    Example:
        >>> async def give(value): return value
        >>> asyncio.run(gather_in_order([lambda: give(1), lambda: give(2)], ends=lambda error: True))
        [1, 2]
    """
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                error = task_failure(task) if task in done else None
                if error is not None and ends(error):
                    raise error
    finally:
        await cancel_and_wait(*tasks)
    return [task_failure(task) or task.result() for task in tasks]


def task_failure(task: asyncio.Task[Any]) -> BaseException | None:
    """Why a finished task failed; one that was cancelled by itself has failed too."""
    if task.cancelled():
        return RunError("a member was cancelled", hint="What it waited for was cancelled inside it.")
    return task.exception()

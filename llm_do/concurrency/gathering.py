"""Run several jobs at once and return their results in declared order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.errors import RunError

__all__ = ["gather_in_order"]

Job = Callable[[], Awaitable[Any]]


async def gather_in_order(jobs: Sequence[Job], *, ends: Callable[[BaseException], bool]) -> list[Any]:
    """Run all jobs at once and return their results, or errors, in order; an error for which `ends` is true is raised.

    Example:
        >>> async def give(value): return value
        >>> asyncio.run(gather_in_order([lambda: give(1), lambda: give(2)], ends=lambda error: True))
        [1, 2]
    """
    tasks = [asyncio.ensure_future(job()) for job in jobs]
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
    """Return the error of a finished task; a task that was cancelled from inside has failed too."""
    if task.cancelled():
        return RunError("a member was cancelled", hint="What it waited for was cancelled inside it.")
    return task.exception()

"""`follow_run`: the journal of a run, from any event on, as it is written by whichever process runs it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import Filter, Observation

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = ["follow_run"]

SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two looks into the store: shortly after something was new, and later."""

MOST_AT_ONCE = 100
"""Events that are read at once: a reader that is slow, or stands still, holds no more of a long run."""

RECOVERY = 2.0
"""Seconds after which a run in which nothing happens is checked for having been killed."""


async def follow_run(store: ThreadStore, run_id: str, *, after: int) -> AsyncIterator[Observation]:
    """Yield the events of a run as they are recorded, until the run has ended.

    A durable run that was stopped, or waits for a person, hasn't ended: what it does once it is resumed follows. A run
    whose process was killed has ended.

    Args:
        store: The store of the run.
        run_id: The run.
        after: The number of the last event that is known already; -1 for none.

    Raises:
        UsageError: There is no such run, or it was deleted.
    """
    pause, checked = SHORTEST, 0.0
    while True:
        run = await store.run(run_id)
        if run is None or run.id != run_id:
            raise UsageError(f"there is no run {run_id!r}", hint="`llm-do runs list` shows the runs that there are.")
        found = await store.observations(Filter(run_id=run_id, after=after), limit=MOST_AT_ONCE, earliest=True)
        for each in found:
            yield each
            after = each.seq
        if len(found) == MOST_AT_ONCE:  # there may be more
            continue
        if run.finished is not None:
            return
        if found:
            pause = SHORTEST
        elif time.monotonic() - checked > RECOVERY:
            checked = time.monotonic()
            if run_id in await store.recover():
                continue
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST)

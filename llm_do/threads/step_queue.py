"""`StepQueue`: the steps of a durable run that aren't on disk yet, as the rows that store them."""

from __future__ import annotations

from collections.abc import Sequence

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.store.store_writes import LargeStep, StepRow

__all__ = ["StepQueue"]


class StepQueue:
    """Steps in their order; the text of a large one is made in a worker thread, before the batch that has it."""

    def __init__(self) -> None:
        self._queued: list[StepRow | LargeStep] = []

    def add(self, step: StepRow | LargeStep) -> None:
        """Queue a step."""
        self._queued.append(step)

    async def write_large(self) -> None:
        """Make the texts that `take` would otherwise make where it is called."""
        while large := [item for item in self._queued if isinstance(item, LargeStep)]:
            row = await run_in_worker(large[0].row)
            self._queued = [row if item is large[0] else item for item in self._queued]

    def take(self) -> list[StepRow]:
        """Return what is queued, and queue it no longer."""
        queued, self._queued = self._queued, []
        return [item.row() if isinstance(item, LargeStep) else item for item in queued]

    def put_back(self, rows: Sequence[StepRow]) -> None:
        """Queue rows again, before all others."""
        self._queued[:0] = rows

"""Batches: many inputs of one entry, each of which becomes a durable run. The protocol by which processes share them.

A row in the store decides who has a run. Whatever carries the work (this process, or an engine on many machines) goes
by `Claims`, and may forget or repeat itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from llm_do._startup.frozen import frozen

__all__ = [
    "BatchInput",
    "BatchItem",
    "BatchRecord",
    "BatchStore",
    "BatchSummary",
    "ClaimedInput",
    "Claims",
    "Taken",
]


@frozen
class BatchRecord:
    """One batch, as it was begun.

    Args:
        id: Its id.
        name: The name of the entry, which its runs have.
        entry: What was asked for by name; None for the project's own entry.
        inputs: The digest of its inputs.
        total: The number of its inputs.
        project: The digest of each of the project's files, as JSON text.
        options: The options that decide what its runs do, as JSON text.
        budget: US dollars that all of its runs may cost together; None for no limit.
        budget_each: US dollars that one of its runs may cost.
        concurrency: The number of runs at once in one process.
        created: Seconds since the epoch.
        used: US dollars that the runs that have ended have cost.
    """

    id: str
    name: str
    entry: str | None
    inputs: str
    total: int
    project: str
    options: str
    budget: float | None = None
    budget_each: float | None = None
    concurrency: int = 1
    created: float = 0.0
    used: float = 0.0


@frozen
class BatchInput:
    """One input to put on the queue.

    Args:
        ordinal: Its place among the inputs: the number of its line, from 1.
        data: The input as JSON text, its secrets sealed.
    """

    ordinal: int
    data: str


@frozen
class ClaimedInput:
    """An input that this process has claimed, and whose run it begins or gives back.

    Args:
        run_id: The run.
        ordinal: The input's place.
        data: The input as JSON text.
    """

    run_id: str
    ordinal: int
    data: str


@frozen
class Taken:
    """What `Claims.take` has claimed.

    Args:
        inputs: The inputs, in order.
        over_budget: Whether there are others that the batch's budget doesn't let start now.
    """

    inputs: tuple[ClaimedInput, ...] = ()
    over_budget: bool = False


@frozen
class BatchItem:
    """Where the run of one input is.

    Args:
        ordinal: The input's place.
        run_id: The run.
        status: `queued`, `running`, `stopped`, `suspended`, or how it ended.
        result: Its result as JSON text with its secrets sealed; None if it hasn't ended or wasn't asked for.
        attempt: The number of its last attempt; 0 if it hasn't begun.
    """

    ordinal: int
    run_id: str
    status: str
    result: str | None = None
    attempt: int = 0


@frozen
class BatchSummary:
    """How far a batch is.

    Args:
        last: The place of the last input that was put on the queue; 0 if there is none.
        statuses: The number of inputs by the status of their runs.
        used: US dollars that the runs that have ended have cost.
    """

    last: int
    statuses: dict[str, int]
    used: float


class Claims(Protocol):
    """How processes share the runs of a batch."""

    async def put(self, batch_id: str, inputs: Sequence[BatchInput]) -> None:
        """Put inputs on the queue; one that is there already stays as it is."""
        ...

    async def take(self, batch_id: str, most: int, run_id: str | None = None) -> Taken:
        """Claim inputs that no process has, the first ones first.

        Args:
            batch_id: The batch.
            most: How many at most.
            run_id: The only one to claim; None for any.

        Returns:
            The inputs. With a budget, an input is only claimed while what has been used and what all unfinished runs
            may use leave room for it.
        """
        ...

    async def alive(self, run_id: str) -> bool:
        """Whether a process that is alive has a run."""
        ...

    async def give_back(self, run_ids: Sequence[str]) -> None:
        """Put claimed inputs back on the queue whose runs haven't begun."""
        ...

    async def owner(self) -> str:
        """Mark this process as alive, and return the id that its runs have; another one once its mark was lost."""
        ...

    async def gone(self, owners: Collection[str]) -> set[str]:
        """Which of these processes, by the ids that `owner` has returned there, aren't alive."""
        ...


class BatchStore(Claims, Protocol):
    """The batches of a store. Every method is one transaction; processes may share a store."""

    async def begin(self, batch: BatchRecord) -> BatchRecord:
        """Keep a batch; returns the one that has the id already, if there is one."""
        ...

    async def update(self, batch: BatchRecord) -> None:
        """Save a batch's project, options, budgets and concurrency."""
        ...

    async def batch(self, batch_id: str) -> BatchRecord | None:
        """Return a batch by its id."""
        ...

    async def summary(self, batch_id: str) -> BatchSummary:
        """Count the runs of a batch, after dealing with those whose process is gone."""
        ...

    async def items(self, batch_id: str, *, after: int, most: int, results: bool = True) -> list[BatchItem]:
        """Return where the inputs after a place are, in order."""
        ...

    async def open(self) -> list[BatchRecord]:
        """Return the batches with something to do, the oldest first, after dealing with runs whose process is gone.

        That is an input on the queue, or a run that has begun, unless it waits for a person.
        """
        ...

    async def left(self, batch_id: str, *, waiting: bool = True) -> list[BatchItem]:
        """Return the begun runs of a batch that no process has, in order: those that were stopped, or are suspended.

        Args:
            batch_id: The batch.
            waiting: Also those with a question that no one has answered yet.
        """
        ...

    async def due(self, batch_id: str, most: int) -> list[BatchItem]:
        """Return runs that could be carried out now: those that were left, then inputs as far as the budget allows."""
        ...

    async def find(self, run_id: str) -> tuple[str, BatchItem] | None:
        """Return the batch and the state of a run, if it belongs to one."""
        ...

    async def running(self, batch_id: str) -> int:
        """Count the runs of a batch that processes have, after dealing with those whose process is gone."""
        ...

    async def has_claimed(self, run_id: str) -> bool:
        """Whether this process has claimed an input whose run hasn't begun."""
        ...

    async def end(self, run_id: str, status: str, result: str) -> None:
        """End a run of a batch that this process has claimed, or that is stopped, without carrying it out."""
        ...

    async def retry(self, batch_id: str) -> int:
        """Put the inputs whose runs haven't completed on the queue again, each with a new run; returns their number."""
        ...

"""What a run writes to a store, as values. Texts in them are JSON; messages and events are already redacted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from llm_do.project.project import RecordSettings
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.store.stored_questions import QuestionRow

__all__ = [
    "Batch",
    "EventRow",
    "ExchangeRow",
    "HistoryNode",
    "LargeStep",
    "MessageRow",
    "PendingWrites",
    "ProjectRow",
    "RunEnd",
    "RunTotals",
    "SpentRow",
    "StepKind",
    "StepRow",
    "StoredObject",
]

StepKind: TypeAlias = Literal["request", "tool", "function", "code", "call"]
"""A model request, a tool call, a function called by name, a `ctx.step`, or the note of a call from Python."""


@frozen
class StepRow:
    """One step, as the store keeps it.

    Args:
        key: What tells it from the run's other steps, the same in every attempt.
        kind: What it is.
        done: Whether it has ended; one that hasn't was in flight when the run was stopped.
        data: How it ended, as JSON text with its secrets sealed.
    """

    key: str
    kind: StepKind
    done: bool
    data: str = "null"


@frozen
class LargeStep:
    """A step whose text is made in a worker thread, as it takes long.

    Args:
        key: As that of its row.
        kind: What it is.
        done: Whether it has ended.
        text: Makes the text.
    """

    key: str
    kind: StepKind
    done: bool
    text: Callable[[], str]

    def row(self) -> StepRow:
        """The row that stores it."""
        return StepRow(self.key, self.kind, self.done, self.text())


@frozen
class ProjectRow:
    """The files of a project, as the store keeps them.

    Args:
        digest: The digest of their paths and contents.
        files: The files, compressed.
    """

    digest: str
    files: bytes


@frozen
class EventRow:
    """One event to add to the journal."""

    seq: int
    time: float
    type: str
    data: str


@frozen
class MessageRow:
    """One message to add to a history."""

    id: str
    parent: str | None
    depth: int
    time: float
    body: str
    metadata: str | None = None


@frozen
class PendingWrites:
    """What a run has changed in its thread so far; it takes effect when the run ends.

    Args:
        tip: The run's newest message.
        state: The thread's state as JSON text; None if unchanged.
        user_state: The user's state as JSON text; None if unchanged.
        toolkits: The toolkits' states as JSON text; None if unchanged.
    """

    tip: str | None = None
    state: str | None = None
    user_state: str | None = None
    toolkits: str | None = None


@frozen
class StoredObject:
    """A part of requests that is stored once, whoever sends it.

    Args:
        digest: The digest of its body and its links.
        body: JSON text.
        links: The objects that it consists of.
    """

    digest: bytes
    body: str
    links: tuple[StoredObject, ...] = ()


class HistoryNode(NamedTuple):  # there may be thousands
    """A history: its last message, after the history before it.

    Args:
        digest: The digest of the history.
        message: The message as canonical data.
    """

    digest: bytes
    message: Mapping[str, Any]


@frozen
class ExchangeRow:
    """One exchange.

    Args:
        place: Where the request was made.
        model: The model, as events name it.
        setup: Its setup.
        head: The digest of its history; empty without messages.
        before: The digest of the history before `nodes`, which this run has written already; empty if there is none.
        nodes: The messages that this run hasn't written yet, in order.
        begun: When it was sent, in seconds since the epoch.
        ended: When it ended.
        first_token: When the first text came.
        data: What came back, as JSON text.
    """

    place: RequestPlace
    model: str
    setup: StoredObject
    head: bytes
    before: bytes
    nodes: Sequence[HistoryNode]
    begun: float
    ended: float
    first_token: float | None
    data: str


@frozen
class SpentRow:
    """What one attempt of a request has used."""

    agent: str
    model: str
    usage: Usage


@frozen
class RunTotals:
    """What a run has used so far, and its models in the order of their first requests."""

    usage: Usage
    models: Sequence[str]


@frozen
class Batch:
    """A run's writes that go into one transaction.

    Args:
        run_id: The run.
        events: New events.
        messages: New messages of the entry agent's history.
        dropped: Messages written by this run that others have replaced.
        draft: The run's pending writes; None if unchanged.
        exchanges: New exchanges.
        spent: What requests have used.
        totals: What the run has used altogether; None if unchanged.
        steps: What steps of a durable run have come to.
        questions: What a durable run asks a person, or asks no longer.
        attempt: The attempt at a durable run that writes this; it is refused if another one has begun.
    """

    run_id: str
    events: Sequence[EventRow] = ()
    messages: Sequence[MessageRow] = ()
    dropped: Sequence[str] = ()
    draft: PendingWrites | None = None
    exchanges: Sequence[ExchangeRow] = ()
    spent: Sequence[SpentRow] = ()
    totals: RunTotals | None = None
    steps: Sequence[StepRow] = ()
    attempt: int = 0
    questions: Sequence[QuestionRow] = ()


@frozen
class RunEnd:
    """The end of a run, saved in one transaction.

    Args:
        batch: The remaining writes.
        status: How the run ended.
        time: When, in seconds since the epoch.
        turn: The thread's turn when the run started.
        head: The thread's newest message.
        state: The thread's state as JSON text; None if unchanged.
        toolkits: The toolkits' states as JSON text; None if unchanged.
        carried: Other data of the history, as JSON text; None if unchanged.
        user_text: The user's state when the run started, as JSON text.
        user_state: The user's state as JSON text; None if unchanged.
        keep: Whether to keep the run's messages as a branch if the thread has changed meanwhile.
        limits: How much the store keeps of exchanges; None drops nothing.
        result: The result of a durable run as JSON text.
    """

    batch: Batch
    status: str
    time: float
    turn: str | None = None
    head: str | None = None
    state: str | None = None
    toolkits: str | None = None
    carried: str | None = None
    user_text: str | None = None
    user_state: str | None = None
    keep: bool = True
    limits: RecordSettings | None = None
    result: str | None = None

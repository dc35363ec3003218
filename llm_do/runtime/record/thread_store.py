"""`ThreadStore`: the interface of a store, and the values that cross it.

Text in these values is JSON; messages and events are already redacted. A store never looks inside, except at the keys
of a user's state, because two runs may change different ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.recording import AgentState
from llm_do.runtime.record.stored_records import (
    Filter,
    Observation,
    RunFilter,
    RunRecord,
    Spending,
    SpendingBy,
    StoredMessage,
    ThreadRecord,
)

if TYPE_CHECKING:
    from llm_do.project.project import RecordSettings
    from llm_do.runtime.record.exchanges import Exchange, RequestPlace
    from llm_do.runtime.record.recording import ThreadConfig
    from llm_do.runtime.record.results import Usage

__all__ = [
    "Batch",
    "EventIdentity",
    "EventRow",
    "ExchangeRow",
    "HistoryNode",
    "MessageRow",
    "OpenedRun",
    "PendingWrites",
    "ResumedRun",
    "RunEnd",
    "RunTotals",
    "SpentRow",
    "StepKind",
    "StepRow",
    "StoredObject",
    "ThreadStore",
]


StepKind: TypeAlias = Literal["request", "tool", "function", "code", "call"]
"""A model request, a tool call, a function called by name, a `ctx.step`, or the note of a call from Python."""

EventIdentity: TypeAlias = tuple[str, str, str]
"""What tells an event from others of its run: call id, type and tool call id; more than one may have the same."""


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


@frozen
class OpenedRun:
    """What a run starts from.

    Args:
        thread: The run's thread; None if it has none.
        history: The latest messages of the thread, limited by its `history_limit`.
        user_state: The user's state.
        user_text: The user's state as JSON text; None if nothing is stored.
        recovered: Killed runs on the thread whose work was added to the history.
    """

    thread: ThreadRecord | None = None
    history: Sequence[StoredMessage] = ()
    user_state: AgentState = field(default_factory=dict[str, AgentState])
    user_text: str | None = None
    recovered: Sequence[str] = ()


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


@frozen
class ResumedRun:
    """A durable run that has begun another attempt.

    Args:
        run: The run; its attempt is the new one.
        beginning: What it began with, as text.
        opened: Its thread and user as they were when it began.
        steps: What has happened in earlier attempts.
        emitted: How many events of each identity the journal has.
        warnings: The warnings that the journal has: message, and path of the agent.
        next_seq: The number of the next event.
        stopped: When the last event was written, in seconds since the epoch.
    """

    run: RunRecord
    beginning: str
    opened: OpenedRun
    steps: tuple[StepRow, ...]
    emitted: Mapping[EventIdentity, int]
    warnings: tuple[tuple[str, str], ...]
    next_seq: int
    stopped: float


class ThreadStore(Protocol):
    """Stores threads, users' states and the journal. Every method is one transaction; processes may share a store."""

    @property
    def name(self) -> str:
        """The store's name in messages."""
        ...

    async def thread(self, thread_id: str, user_id: str | None = None) -> ThreadRecord | None:
        """Return a user's thread, or None if there is none with that id."""
        ...

    async def threads(
        self, user_id: str | None = None, *, every_user: bool = False, limit: int | None = None
    ) -> list[ThreadRecord]:
        """List a user's threads, or every user's, most recent first."""
        ...

    async def save_thread(
        self, record: ThreadRecord, *, expected: str | None, messages: Sequence[MessageRow] = ()
    ) -> ThreadRecord:
        """Save a thread, with new messages of its history.

        Args:
            record: The thread; its revision and times are set by the store.
            expected: The revision it was read at; None for a new thread.
            messages: New messages, each after its parent.

        Returns:
            The thread as stored.

        Raises:
            ThreadConflict: The thread has another revision, or its head doesn't exist.
        """
        ...

    async def delete_thread(self, thread_id: str, user_id: str | None = None, *, expected: str | None = None) -> bool:
        """Delete a thread, the messages that no other thread shares, and its runs in the journal.

        Returns:
            Whether the thread existed.

        Raises:
            ThreadConflict: The thread doesn't have the expected revision.
        """
        ...

    async def history(
        self, head: str | None, *, limit: int | None = None, stop: str | None = None, before: str | None = None
    ) -> list[StoredMessage]:
        """Read the history that ends at `head`, in order.

        Args:
            head: Id of the newest message.
            limit: Return at most this many, the latest.
            stop: Only messages after this one.
            before: Only messages before this one; an empty list if it isn't in the history.
        """
        ...

    async def message(self, message_id: str) -> StoredMessage | None:
        """Return a message by its id."""
        ...

    async def user_state(self, user_id: str) -> tuple[AgentState, str | None]:
        """Return a user's state and its revision; an empty object and None if nothing is stored."""
        ...

    async def save_user_state(self, user_id: str, state: AgentState, *, expected: str | None) -> str:
        """Save a user's state.

        Returns:
            The new revision.

        Raises:
            ThreadConflict: The state doesn't have the expected revision.
        """
        ...

    async def begin_run(self, run: RunRecord, defaults: ThreadConfig, beginning: str | None = None) -> OpenedRun:
        """Start a run: finish killed runs on its thread, create the thread if necessary, and read it.

        A run may start again after a `ThreadConflict`.

        Args:
            run: The run.
            defaults: The configuration of a new thread.
            beginning: What a durable run begins with, as text; None for any other run.

        Raises:
            UsageError: A run with this id is active, or has ended, or one on its thread waits to be resumed.
        """
        ...

    async def resume_run(self, run_id: str) -> ResumedRun:
        """Begin another attempt at a durable run whose process is gone, or which waits.

        What earlier attempts wrote to its thread is dropped, since the replay writes it again.

        Raises:
            UsageError: There is no such run, or it isn't durable, is active, or has ended.
        """
        ...

    async def stop_run(self, batch: Batch, status: str) -> None:
        """Leave a durable run to be resumed: write what is queued of it, and mark it as stopped or suspended.

        Raises:
            RunTakenError: Another attempt has begun, which isn't affected.
        """
        ...

    async def drop_run(self, run_id: str) -> None:
        """End a durable run that waits to be resumed, as one that was interrupted.

        Raises:
            UsageError: There is no such run, or it is active or has ended.
        """
        ...

    async def run_texts(self, run_id: str) -> tuple[str | None, str | None]:
        """Return what a durable run began with, and its result if it has ended, both as JSON text."""
        ...

    async def write(self, batch: Batch) -> None:
        """Write what a run has done since the last batch."""
        ...

    async def finish_run(self, ending: RunEnd) -> None:
        """End a run.

        Raises:
            ThreadConflict: Another run has continued the thread, or changed the same keys of the user's state.
        """
        ...

    async def recover(self) -> list[str]:
        """Finish every run whose process is gone, and return their ids."""
        ...

    async def runs(
        self, *, thread_id: str | None = None, limit: int | None = None, filter: RunFilter | None = None
    ) -> list[RunRecord]:
        """List runs, most recent first: those of a thread, those that a filter selects, or all."""
        ...

    async def spending(self, by: SpendingBy, filter: RunFilter | None = None) -> list[Spending]:
        """Sum up what the requests of runs have used: by day, the latest first, or by agent or model, by cost."""
        ...

    async def run(self, run_id: str) -> RunRecord | None:
        """Return a run by its id or an unambiguous prefix of it."""
        ...

    async def observations(self, filter: Filter, *, limit: int | None = None) -> list[Observation]:
        """Read journal entries in the order they were written; with a limit, only the latest."""
        ...

    async def exchanges(self, run_id: str) -> list[Exchange]:
        """Read the exchanges of a run in the order in which they ended.

        What is kept of a request is what `RequestReader` reads: no clocks and addresses, attachments as digests, tool
        calls numbered, secrets removed. Empty if none were kept, or if they have been dropped.
        """
        ...

    async def add_observation(self, observation: Observation) -> None:
        """Add an application's own entry, with an id of its own instead of a run's."""
        ...

    async def aclose(self) -> None:
        """Close the store; it reopens when used again."""
        ...

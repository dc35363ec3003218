"""`ThreadStore`: the interface of a store, and the values that cross it.

Text in these values is JSON; messages and events are already redacted. A store never looks inside, except at the keys
of a user's state, because two runs may change different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.recording import AgentState
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord, StoredMessage, ThreadRecord

if TYPE_CHECKING:
    from llm_do.runtime.record.recording import ThreadConfig

__all__ = ["Batch", "EventRow", "MessageRow", "OpenedRun", "PendingWrites", "RunEnd", "ThreadStore"]


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
class Batch:
    """A run's writes that go into one transaction.

    Args:
        run_id: The run.
        events: New events.
        messages: New messages of the entry agent's history.
        dropped: Messages written by this run that others have replaced.
        draft: The run's pending writes; None if unchanged.
    """

    run_id: str
    events: Sequence[EventRow] = ()
    messages: Sequence[MessageRow] = ()
    dropped: Sequence[str] = ()
    draft: PendingWrites | None = None


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

    async def begin_run(self, run: RunRecord, defaults: ThreadConfig) -> OpenedRun:
        """Start a run: finish killed runs on its thread, create the thread if necessary, and read it.

        A run may start again after a `ThreadConflict`.

        Args:
            run: The run.
            defaults: The configuration of a new thread.

        Raises:
            UsageError: A run with this id is active, or has ended.
        """
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

    async def runs(self, *, thread_id: str | None = None, limit: int | None = None) -> list[RunRecord]:
        """List runs, most recent first."""
        ...

    async def run(self, run_id: str) -> RunRecord | None:
        """Return a run by its id or an unambiguous prefix of it."""
        ...

    async def observations(self, filter: Filter, *, limit: int | None = None) -> list[Observation]:
        """Read journal entries in the order they were written; with a limit, only the latest."""
        ...

    async def add_observation(self, observation: Observation) -> None:
        """Add an application's own entry, with an id of its own instead of a run's."""
        ...

    async def aclose(self) -> None:
        """Close the store; it reopens when used again."""
        ...

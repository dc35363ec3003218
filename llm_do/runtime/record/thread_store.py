"""`ThreadStore`: what a store has to do, whatever it keeps its data in; and the values that pass its border.

Texts in these values are JSON, those of messages and events redacted already. A store never looks inside them, but
for the keys of a user's state, of which two runs may change different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from llm_do._frozen import frozen
from llm_do.runtime.record.recording import AgentState
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord, StoredMessage, ThreadRecord

if TYPE_CHECKING:
    from llm_do.runtime.record.recording import ThreadConfig

__all__ = ["Batch", "EventRow", "MessageRow", "OpenedRun", "PendingWrites", "RunEnd", "ThreadStore"]


@frozen
class EventRow:
    """One event on its way into the journal."""

    seq: int
    time: float
    type: str
    data: str


@frozen
class MessageRow:
    """One message on its way into a history."""

    id: str
    parent: str | None
    depth: int
    time: float
    body: str
    metadata: str | None = None


@frozen
class PendingWrites:
    """What a run has made of its thread so far; it counts once the run has ended.

    Args:
        tip: Its newest message.
        state: The thread's state as JSON text; None as it was.
        user_state: The user's state as JSON text; None as it was.
        toolkits: The toolkits' states as JSON text; None as they were.
    """

    tip: str | None = None
    state: str | None = None
    user_state: str | None = None
    toolkits: str | None = None


@frozen
class Batch:
    """What is written of a run at once.

    Args:
        run_id: The run.
        events: New events.
        messages: New messages of the entry agent's history.
        dropped: Messages of this run's draft that others have taken the place of.
        draft: The draft as it is now; None as it was.
    """

    run_id: str
    events: Sequence[EventRow] = ()
    messages: Sequence[MessageRow] = ()
    dropped: Sequence[str] = ()
    draft: PendingWrites | None = None


@frozen
class OpenedRun:
    """What a run begins with.

    Args:
        thread: Its thread; None without one.
        history: The latest messages of its history, at most as many as its configuration says.
        user_state: The user's state.
        user_text: The same as JSON text; None while there is none.
        recovered: Runs on the thread that had been killed, and whose work is in the history now.
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
        batch: What is left to write.
        status: How the run ended.
        time: When, in seconds since the epoch.
        turn: The thread's turn that the run began with.
        head: The thread's newest message now.
        state: The thread's state as JSON text; None as it was.
        toolkits: The toolkits' as JSON text; None as they were.
        carried: What else belongs to the history, as JSON text; None as it was.
        user_text: The user's state that the run began with, as JSON text.
        user_state: The user's state now, as JSON text; None as it was.
        keep: Whether what the run did is kept as a branch if the thread has changed meanwhile.
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
    """Keeps threads, users' states and the journal; every method is one transaction, several processes may share it."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    async def thread(self, thread_id: str, user_id: str | None = None) -> ThreadRecord | None:
        """One thread; None when this user has none of that name."""
        ...

    async def threads(
        self, user_id: str | None = None, *, every_user: bool = False, limit: int | None = None
    ) -> list[ThreadRecord]:
        """A user's threads or everybody's, the latest first."""
        ...

    async def save_thread(
        self, record: ThreadRecord, *, expected: str | None, messages: Sequence[MessageRow] = ()
    ) -> ThreadRecord:
        """Save a thread and messages that its history gains.

        Args:
            record: The thread; its revision and times are set here.
            expected: The revision it was read with; None makes a new one.
            messages: New messages, each after the one it points at.

        Returns:
            The thread as it is stored.

        Raises:
            ThreadConflict: It has another revision, or its head exists nowhere.
        """
        ...

    async def delete_thread(self, thread_id: str, user_id: str | None = None, *, expected: str | None = None) -> bool:
        """Delete a thread, its messages that no other thread shares, and its runs in the journal.

        Returns:
            Whether there was one.

        Raises:
            ThreadConflict: It doesn't have the expected revision.
        """
        ...

    async def history(
        self, head: str | None, *, limit: int | None = None, stop: str | None = None, before: str | None = None
    ) -> list[StoredMessage]:
        """The messages that end with `head`, in order.

        Args:
            head: The newest one.
            limit: At most so many, the latest.
            stop: Only those after this one.
            before: Only those before this one; none where it isn't one of them.
        """
        ...

    async def message(self, message_id: str) -> StoredMessage | None:
        """One message by its id."""
        ...

    async def user_state(self, user_id: str) -> tuple[AgentState, str | None]:
        """A user's state, and its revision; an empty object and None while there is none."""
        ...

    async def save_user_state(self, user_id: str, state: AgentState, *, expected: str | None) -> str:
        """Save a user's state.

        Returns:
            Its new revision.

        Raises:
            ThreadConflict: It has another revision than expected.
        """
        ...

    async def begin_run(self, run: RunRecord, defaults: ThreadConfig) -> OpenedRun:
        """Begin a run: finish those on its thread that were killed, make the thread if need be, and read it.

        Args:
            run: The run.
            defaults: The configuration of a new thread.
        """
        ...

    async def write(self, batch: Batch) -> None:
        """Write what a run has done since."""
        ...

    async def finish_run(self, ending: RunEnd) -> None:
        """End a run.

        Raises:
            ThreadConflict: Another run has continued the thread, or changed the same keys of the user's state.
        """
        ...

    async def recover(self) -> list[str]:
        """Finish every run whose process is gone; their ids."""
        ...

    async def runs(self, *, thread_id: str | None = None, limit: int | None = None) -> list[RunRecord]:
        """Runs, the latest first."""
        ...

    async def run(self, run_id: str) -> RunRecord | None:
        """One run, by its id or the only beginning of one."""
        ...

    async def observations(self, filter: Filter, *, limit: int | None = None) -> list[Observation]:
        """Entries of the journal in the order they were written; with a limit, the latest ones."""
        ...

    async def add_observation(self, observation: Observation) -> None:
        """Add an entry of an application's own, with an id of its own in the place of a run's."""
        ...

    async def aclose(self) -> None:
        """Close it; it opens again when it is used."""
        ...

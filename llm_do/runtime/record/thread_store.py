"""`ThreadStore`: the interface of a store.

A store never looks inside the JSON texts of the values, except at the keys of a user's state, because two runs may
change different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

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
    from llm_do.runtime.record.exchanges import Exchange
    from llm_do.runtime.record.recording import ThreadConfig
    from llm_do.runtime.record.store.batches import BatchStore
    from llm_do.runtime.record.store.memories import MemoryStore
    from llm_do.runtime.record.store.opened_runs import OpenedRun, ResumedRun
    from llm_do.runtime.record.store.store_writes import Batch, MessageRow, ProjectRow, RunEnd
    from llm_do.runtime.record.store.stored_questions import KeptAnswer, QuestionRow

__all__ = ["ThreadStore"]


class ThreadStore(Protocol):
    """Stores threads, users' states and the journal. Every method is one transaction; processes may share a store."""

    @property
    def name(self) -> str:
        """The store's name in messages."""
        ...

    @property
    def batches(self) -> BatchStore:
        """Its batches: many inputs of one entry."""
        ...

    @property
    def memories(self) -> MemoryStore:
        """What agents remember in it."""
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
        """Delete a thread, its memories, the messages that no other thread shares, and its runs in the journal.

        What `llm-do undo` has kept of these runs goes with them.

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

    async def begin_run(
        self,
        run: RunRecord,
        defaults: ThreadConfig,
        beginning: str | None = None,
        project: ProjectRow | None = None,
    ) -> OpenedRun:
        """Start a run: finish killed runs on its thread, create the thread if necessary, and read it.

        A run may start again after a `ThreadConflict`.

        Args:
            run: The run.
            defaults: The configuration of a new thread.
            beginning: What a durable run begins with, as text; None for any other run.
            project: The files of the project that a durable run begins with, kept once for all its runs.

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

    async def project_files(self, run_id: str) -> ProjectRow | None:
        """Return the files of the project that a durable run began with; None if they weren't kept."""
        ...

    async def run_texts(self, run_id: str) -> tuple[str | None, str | None]:
        """Return what a durable run began with, and its result if it has ended, both as JSON text."""
        ...

    async def questions(self, run_id: str | None = None, *, answered: bool = False) -> tuple[QuestionRow, ...]:
        """Read what durable runs ask a person.

        Args:
            run_id: Only this run's; None reads those of all runs that haven't ended.
            answered: Also those of the run that have been answered.
        """
        ...

    async def answer_question(self, question_id: str, answer: str, by: str) -> KeptAnswer:
        """Answer a question, unless it has been answered: the first answer counts.

        Returns:
            The question with the answer that counts, and whether it is this one.

        Raises:
            UsageError: There is no such question, or its run has ended.
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

    async def observations(
        self, filter: Filter, *, limit: int | None = None, earliest: bool = False
    ) -> list[Observation]:
        """Read journal entries in the order they were written; with a limit, only the latest, or the `earliest`."""
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

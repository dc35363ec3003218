"""The protocols between a run and its storage: threads, their configuration and state, and the journal of events.

The runtime knows only these protocols and values. Storage on disk is in `llm_do.threads`, which is imported when
a run is first recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from llm_do._extensions import ExtensionPoint
from llm_do.errors import UsageError
from llm_do.project.thread_config import ThreadConfig

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.project import Project, RecordSettings
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.record.exchanges import Exchange
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.sent_request import RequestReader
    from llm_do.runtime.record.store.batches import BatchStore
    from llm_do.runtime.record.store.memories import ProjectMemories
    from llm_do.runtime.record.store.opened_runs import ResumedRun
    from llm_do.runtime.record.store.store_writes import LargeStep, ProjectRow, StepRow
    from llm_do.runtime.record.store.stored_questions import KeptAnswer, QuestionRow
    from llm_do.runtime.record.stored_records import RunRecord
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = [
    "RECORDER",
    "AgentState",
    "RecordedRun",
    "Recorder",
    "Recording",
    "ThreadConfig",
    "ThreadView",
    "UserView",
    "check_id",
    "recorder_of",
    "toolkit_states",
]

AgentState: TypeAlias = Any
"""The state of a thread or a user between runs: any JSON, initially an object."""


def check_id(what: Literal["thread", "user", "run"], id: str | None) -> None:
    """Raise `UsageError` if an id is empty or not a string.

    Example:
        >>> check_id("thread", "42")
        >>> check_id("thread", None)
    """
    if id is None or (isinstance(id, str) and id.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        return
    fault = "is empty" if isinstance(id, str) else f"must be a string, not {id!r}"  # pyright: ignore[reportUnnecessaryIsInstance]
    without = "a run without a thread" if what == "thread" else "a run without a user"
    raise UsageError(f"the {what}'s id {fault}", hint=f"Pass the {what}'s id, or None for {without}.")


@dataclass(slots=True, eq=False)
class ThreadView:
    """A run's thread as its code sees it; `state` may be changed in place or replaced, and is saved with the run.

    A run without a thread has one too: its state lives as long as the run.

    Args:
        id: The thread's id; None without a thread.
        state: Any JSON.
        config: The thread's configuration.
    """

    id: str | None = None
    state: AgentState = field(default_factory=dict[str, Any])
    config: ThreadConfig = field(default_factory=ThreadConfig)


@dataclass(slots=True, eq=False)
class UserView:
    """A run's user as its code sees it; `state` is shared by all of the user's threads.

    Args:
        id: The user's id; None without a user.
        state: Any JSON.
    """

    id: str | None = None
    state: AgentState = field(default_factory=dict[str, Any])


class Recording(Protocol):
    """The record of one active run."""

    @property
    def history(self) -> Sequence[ModelMessage]:
        """The conversation so far, limited by the thread's configuration."""
        ...

    @property
    def toolkits(self) -> Mapping[str, Any]:
        """The toolkits' contexts and states at the end of the thread's last run, as JSON data."""
        ...

    @property
    def active(self) -> str | None:
        """The agent that was in control at the end of the thread's last run."""
        ...

    def add_event(self, event: Event) -> None:
        """Queue an event for the journal without waiting for it to be written."""
        ...

    def request_reader(self) -> RequestReader | None:
        """Create the reader of a call's requests; None if exchanges aren't kept."""
        ...

    def add_exchange(self, exchange: Exchange) -> None:
        """Queue a request that has ended, without waiting for it to be written."""
        ...

    def add_step(self, step: StepRow | LargeStep) -> None:
        """Queue a step of a durable run for the next batch."""
        ...

    def add_question(self, question: QuestionRow) -> None:
        """Queue what a durable run asks a person, or asks no longer, for the next batch."""
        ...

    async def questions(self, *, answered: bool = False) -> Sequence[QuestionRow]:
        """Read which of the run's questions wait for an answer, or all of them."""
        ...

    async def answer_question(self, question_id: str, answer: str, by: str) -> KeptAnswer:
        """Answer a question unless it has been answered; returns which answer counts."""
        ...

    def attach(self, toolkits: Callable[[], Mapping[str, ToolkitState]]) -> None:
        """Set the function that reads the current states of the entry agent's toolkits."""
        ...

    def save_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Queue the entry agent's history as it is now, without waiting for it to be written."""
        ...

    async def flush(self, *, required: bool = False) -> None:
        """Wait until everything queued so far is on disk.

        Args:
            required: Whether a run without thread and user has to end, too, if it can't be written; otherwise it goes
                on unrecorded.

        Raises:
            StoreError: It can't be written.
        """
        ...

    async def finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        *,
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
        result: str | None = None,
    ) -> None:
        """Save the end of the run in one transaction: its last event, the thread's history, state and toolkits.

        Cancellation takes effect only after everything is saved.
        """
        ...

    async def clean_up(self) -> None:
        """Delete what the store no longer has to keep. No failure of this is a failure of the run, which has ended."""
        ...

    async def stop(self, status: str) -> None:
        """Leave a durable run to be resumed: write what is queued, and mark it as stopped or suspended.

        Raises:
            StoreError: It can't be written; the run can be resumed all the same, once its process is gone.
        """
        ...


class RecordedRun(Protocol):
    """The attributes of a run that its record reads and sets."""

    thread: ThreadView
    user: UserView

    def deliver(self, event: Event) -> None:
        """Deliver one event to the run's subscribers."""
        ...

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    @property
    def thread_id(self) -> str | None:
        """The id of the run's thread."""
        ...

    @property
    def user_id(self) -> str | None:
        """The id of the run's user; None without one."""
        ...

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
        ...


class Recorder(Protocol):
    """Opens the records of runs."""

    async def begin(
        self,
        run: RecordedRun,
        entry: str,
        settings: RecordSettings,
        beginning: str | None = None,
        project: ProjectRow | None = None,
    ) -> Recording | None:
        """Open the run's thread and its record; sets `run.thread` and `run.user`.

        Args:
            run: The run.
            entry: The name of its entry.
            settings: How much the store keeps of its exchanges.
            beginning: What a durable run begins with, as text.
            project: The files of the project that it begins with.
        """
        ...

    async def resume(self, run: RecordedRun, settings: RecordSettings) -> tuple[Recording, ResumedRun]:
        """Begin another attempt at a durable run, by its id; sets `run.thread` and `run.user`."""
        ...

    async def find(self, run_id: str) -> tuple[RunRecord, str | None, str | None] | None:
        """A run by its id; of a durable one its beginning and its result, as text."""
        ...

    def batches(self) -> BatchStore:
        """Return the batches of its store.

        Raises:
            StoreError: Nothing can be recorded there.
        """
        ...

    def memories(self, *, writes: bool) -> ProjectMemories:
        """Return what the project's agents remember; one that can only be read is used unless it `writes`.

        Raises:
            StoreError: There is no store that can be used.
        """
        ...

    async def project_files(self, run_id: str) -> ProjectRow | None:
        """The files of the project that a durable run began with; None if they weren't kept."""
        ...

    def store(self) -> ThreadStore:
        """The store that runs are recorded in, opened at its first use."""
        ...

    async def aclose(self) -> None:
        """Close the recorder's resources."""
        ...


RECORDER: ExtensionPoint[Callable[[Project, ThreadStore | Path | str | None, Callable[[str], None]], Recorder]] = (
    ExtensionPoint("recorder")
)
"""Creates the recorder of a project's runs; without a store it uses the project's own."""


def toolkit_states(data: Mapping[str, Any]) -> dict[str, ToolkitState]:
    """Return the states of toolkits from JSON data."""
    if not data:
        return {}
    from llm_do.machines.machine import ToolkitState

    return {name: ToolkitState.from_dict(state) for name, state in data.items()}


def recorder_of(project: Project, store: ThreadStore | Path | str | None, notice: Callable[[str], None]) -> Recorder:
    """Return the recorder of a project."""
    return RECORDER.get()(project, store, notice)

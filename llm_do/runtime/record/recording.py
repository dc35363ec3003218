"""The seam between a run and what remembers it: threads, their configuration and state, and the journal of events.

The runtime knows these protocols and values only. What keeps them on disk lives in `llm_do.threads`, which is
imported when a run is first recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from llm_do._extensions import ExtensionPoint
from llm_do.errors import UsageError
from llm_do.project.thread_config import ThreadConfig

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.project import Project
    from llm_do.runtime.record.events import Event
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
"""What a thread or a user keeps between runs: any JSON, an object unless something else is put there."""


def check_id(what: Literal["thread", "user"], id: str | None) -> None:
    """See that something can be kept under an id.

    Example:
        >>> check_id("thread", "42")
        >>> check_id("thread", None)
    """
    if id is None or (isinstance(id, str) and id.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        return
    fault = "is empty" if isinstance(id, str) else f"is no text, but {id!r}"  # pyright: ignore[reportUnnecessaryIsInstance]
    without = "a run without a thread" if what == "thread" else "what is nobody's in particular"
    raise UsageError(f"the {what}'s id {fault}", hint=f"Give the {what}'s id, or None for {without}.")


@dataclass(slots=True, eq=False)
class ThreadView:
    """What code in a run sees of its thread; `state` may be changed in place or replaced, and is saved with the run.

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
    """What code in a run sees of its user; `state` belongs to the user over all their threads.

    Args:
        id: The user's id; None without a user.
        state: Any JSON.
    """

    id: str | None = None
    state: AgentState = field(default_factory=dict[str, Any])


class Recording(Protocol):
    """The record of one run while it goes on."""

    @property
    def history(self) -> Sequence[ModelMessage]:
        """The conversation so far, as much of it as the thread's configuration lets a model see."""
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

    def attach(self, toolkits: Callable[[], Mapping[str, ToolkitState]]) -> None:
        """Set the function that reads the current states of the entry agent's toolkits."""
        ...

    def save_messages(self, messages: Sequence[ModelMessage]) -> None:
        """Queue the entry agent's history as it is now, without waiting for it to be written."""
        ...

    async def flush(self) -> None:
        """Wait until everything queued so far is on disk."""
        ...

    async def finish(
        self,
        event: Event,
        messages: Sequence[ModelMessage],
        *,
        toolkits: Mapping[str, ToolkitState],
        active: str | None,
        effects: bool,
    ) -> None:
        """Save the end of the run in one transaction: its last event, the thread's history, state and toolkits.

        Cancelling it is heard only when everything is saved.
        """
        ...


class RecordedRun(Protocol):
    """What a record takes from its run, and puts there."""

    thread: ThreadView
    user: UserView

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    @property
    def thread_id(self) -> str | None:
        """The thread it belongs to."""
        ...

    @property
    def user_id(self) -> str | None:
        """Whose run it is."""
        ...


class Recorder(Protocol):
    """Begins the records of runs."""

    async def begin(self, run: RecordedRun, entry: str) -> Recording | None:
        """Open the run's thread and begin its record; fills `run.thread` and `run.user`."""
        ...

    async def aclose(self) -> None:
        """Close what the recorder holds open."""
        ...


RECORDER: ExtensionPoint[Callable[[Project, ThreadStore | None, Callable[[str], None]], Recorder]] = ExtensionPoint(
    "recorder"
)
"""Makes the recorder of a project's runs; without a store it uses the project's own."""


def toolkit_states(data: Mapping[str, Any]) -> dict[str, ToolkitState]:
    """The states of toolkits from JSON data."""
    if not data:
        return {}
    from llm_do.machines.machine import ToolkitState

    return {name: ToolkitState.from_dict(state) for name, state in data.items()}


def recorder_of(project: Project, store: ThreadStore | None, notice: Callable[[str], None]) -> Recorder:
    """The recorder of a project."""
    return RECORDER.get()(project, store, notice)

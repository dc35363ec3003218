"""What a run starts from: its thread and user, and of a durable run what earlier attempts did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.recording import AgentState
from llm_do.runtime.record.stored_records import (
    RunRecord,
    StoredMessage,
    ThreadRecord,
)

if TYPE_CHECKING:
    from llm_do.runtime.record.store.store_writes import StepRow
    from llm_do.runtime.record.store.stored_questions import QuestionRow

__all__ = ["EventIdentity", "OpenedRun", "ResumedRun"]

EventIdentity: TypeAlias = tuple[str, str, str]
"""What tells an event from others of its run: call id, type and tool call id; more than one may have the same."""


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
        questions: What earlier attempts asked a person, with the answers.
    """

    run: RunRecord
    beginning: str
    opened: OpenedRun
    steps: tuple[StepRow, ...]
    emitted: Mapping[EventIdentity, int]
    warnings: tuple[tuple[str, str], ...]
    next_seq: int
    stopped: float
    questions: tuple[QuestionRow, ...] = ()

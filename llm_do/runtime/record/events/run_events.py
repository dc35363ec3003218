"""How a run and its calls go: their starts and ends, handoffs, guards and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.events.event_base import EventBase

__all__ = [
    "HANDOFF_ATTRIBUTES",
    "CallFinishedEvent",
    "CallStartedEvent",
    "GuardEvent",
    "HandoffEvent",
    "RunFailedEvent",
    "RunFinishedEvent",
    "RunResumedEvent",
    "RunStartedEvent",
    "WarningEvent",
]

HANDOFF_ATTRIBUTES = {"from": "source", "to": "target"}
"""The attributes of a handoff by their names in JSON data; `from` can't be an attribute's name."""

_JSON_NAMES = {attribute: name for name, attribute in HANDOFF_ATTRIBUTES.items()}


@frozen(kw_only=True)
class RunStartedEvent(EventBase):
    """A run started.

    Args:
        entry: Name of the entry.
        input: Its input, as JSON data.
    """

    type: ClassVar[Literal["run_started"]] = "run_started"
    entry: str
    input: Any


@frozen(kw_only=True)
class RunResumedEvent(EventBase):
    """A durable run continues after it was stopped; text that was streamed before and never completed is void.

    Args:
        attempt: The number of the attempt that begins, from 2.
        steps: How many steps were finished before.
    """

    type: ClassVar[Literal["run_resumed"]] = "run_resumed"
    attempt: int
    steps: int


@frozen(kw_only=True)
class RunFinishedEvent(EventBase):
    """A run completed.

    Args:
        status: `completed`, or `denied` if a call was denied because there was no person to ask.
        output: Its output, as JSON data.
    """

    type: ClassVar[Literal["run_finished"]] = "run_finished"
    status: str
    output: Any


@frozen(kw_only=True)
class RunFailedEvent(EventBase):
    """A run ended early.

    Args:
        status: How, as in `RunResult.status`.
        error: `type`, `message`, `agent_path`; `file`, `line`, `hint` where known.
    """

    type: ClassVar[Literal["run_failed"]] = "run_failed"
    status: str
    error: Mapping[str, Any]


@frozen(kw_only=True)
class CallStartedEvent(EventBase):
    """An agent, a function or a flow was called.

    Args:
        input: Its input, as JSON data.
        label: What the caller's code tells the call apart by; empty if it doesn't say.
    """

    type: ClassVar[Literal["call_started"]] = "call_started"
    input: Any
    label: str = ""


@frozen(kw_only=True)
class CallFinishedEvent(EventBase):
    """That call ended.

    Args:
        status: How, as in `RunResult.status`.
        output: What it returned, as JSON data; None when it ended early.
    """

    type: ClassVar[Literal["call_finished"]] = "call_finished"
    status: str
    output: Any


@frozen(kw_only=True)
class HandoffEvent(EventBase):
    """One agent handed control to another; as JSON data the two are `from` and `to`.

    Args:
        source: The agent that hands over control.
        target: The agent that gets control.
        reason: The model's reason.
    """

    type: ClassVar[Literal["handoff"]] = "handoff"
    source: str
    target: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data."""
        data = EventBase.to_dict(self)
        return {_JSON_NAMES.get(name, name): value for name, value in data.items()}


@frozen(kw_only=True)
class GuardEvent(EventBase):
    """A guard replaced an agent's input or output.

    Args:
        guard: The name of the guard.
        side: `input` or `output`.
        replacement: What the agent got, or returned, instead.
    """

    type: ClassVar[Literal["guard"]] = "guard"
    guard: str
    side: str
    replacement: Any


@frozen(kw_only=True)
class WarningEvent(EventBase):
    """A warning that doesn't end the run.

    Args:
        message: A sentence.
    """

    type: ClassVar[Literal["warning"]] = "warning"
    message: str

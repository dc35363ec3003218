"""The events of a run, one frozen class per type. Who receives them is in `llm_do.runtime.record.subscription`.

Every event becomes JSON data with `to_dict`. The runtime emits events where things happen; none is translated
from a provider's stream. An application's own events are in `llm_do.runtime.record.event_bus`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeAlias, cast, get_args

from llm_do._startup.frozen import frozen

__all__ = [
    "EVENT_TYPES",
    "HANDOFF_ATTRIBUTES",
    "ApprovalRequestedEvent",
    "ApprovalResolvedEvent",
    "CallFinishedEvent",
    "CallStartedEvent",
    "Event",
    "EventBase",
    "GuardEvent",
    "HandoffEvent",
    "ModelRequestEvent",
    "RetryEvent",
    "RunFailedEvent",
    "RunFinishedEvent",
    "RunResumedEvent",
    "RunStartedEvent",
    "StateChangedEvent",
    "TextDoneEvent",
    "TextEvent",
    "ThinkingEvent",
    "ToolCallEvent",
    "ToolResultEvent",
    "UsageEvent",
    "WarningEvent",
    "event_from_dict",
]

HANDOFF_ATTRIBUTES = {"from": "source", "to": "target"}
"""The attributes of a handoff by their names in JSON data; `from` can't be an attribute's name."""

_JSON_NAMES = {attribute: name for name, attribute in HANDOFF_ATTRIBUTES.items()}


@frozen(kw_only=True)
class EventBase:
    """The fields of every event: its time, and the run and call it belongs to.

    Args:
        seq: Number of the event in its run, from 0, without gaps. In a durable run, streamed text has the number of the
            last event before it.
        time: Seconds since the epoch.
        run_id: The run.
        call_id: The call it happened in.
        parent_call_id: The call that made that call; None for the entry.
        agent_name: Name of the agent or entry.
        path: Call path, such as `main/analyst`.
        depth: 0 for the entry, 1 for what it calls.
    """

    type: ClassVar[str]

    seq: int
    time: float
    run_id: str
    call_id: str
    parent_call_id: str | None
    agent_name: str
    path: str
    depth: int

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data, its type included."""
        data: dict[str, Any] = {"type": self.type}
        for name in FIELDS[type(self)]:
            data[name] = getattr(self, name)
        return data


@frozen(kw_only=True)
class RunStartedEvent(EventBase):
    """A run started.

    Args:
        entry: Name of the entry.
        input: Its input, as JSON data.
    """

    type: ClassVar[str] = "run_started"
    entry: str
    input: Any


@frozen(kw_only=True)
class RunResumedEvent(EventBase):
    """A durable run continues after it was stopped; text that was streamed before and never completed is void.

    Args:
        attempt: The number of the attempt that begins, from 2.
        steps: How many steps were finished before.
    """

    type: ClassVar[str] = "run_resumed"
    attempt: int
    steps: int


@frozen(kw_only=True)
class RunFinishedEvent(EventBase):
    """A run completed.

    Args:
        status: `completed`, or `denied` if a call was denied because there was no person to ask.
        output: Its output, as JSON data.
    """

    type: ClassVar[str] = "run_finished"
    status: str
    output: Any


@frozen(kw_only=True)
class RunFailedEvent(EventBase):
    """A run ended early.

    Args:
        status: How, as in `RunResult.status`.
        error: `type`, `message`, `agent_path`; `file`, `line`, `hint` where known.
    """

    type: ClassVar[str] = "run_failed"
    status: str
    error: Mapping[str, Any]


@frozen(kw_only=True)
class CallStartedEvent(EventBase):
    """An agent, a function or a flow was called.

    Args:
        input: Its input, as JSON data.
        label: What the caller's code tells the call apart by; empty if it doesn't say.
    """

    type: ClassVar[str] = "call_started"
    input: Any
    label: str = ""


@frozen(kw_only=True)
class CallFinishedEvent(EventBase):
    """That call ended.

    Args:
        status: How, as in `RunResult.status`.
        output: What it returned, as JSON data; None when it ended early.
    """

    type: ClassVar[str] = "call_finished"
    status: str
    output: Any


@frozen(kw_only=True)
class TextEvent(EventBase):
    """A piece of a model's text as it arrives; emitted only if a subscriber asks for it.

    Args:
        text: The piece.
    """

    type: ClassVar[str] = "text"
    text: str


@frozen(kw_only=True)
class TextDoneEvent(EventBase):
    """The complete text of one model response.

    Args:
        text: The complete text.
    """

    type: ClassVar[str] = "text_done"
    text: str


@frozen(kw_only=True)
class ThinkingEvent(EventBase):
    """The thinking that a model returned before its answer.

    Args:
        text: The complete text.
    """

    type: ClassVar[str] = "thinking"
    text: str


@frozen(kw_only=True)
class ToolCallEvent(EventBase):
    """A model requested a tool call.

    Args:
        tool_name: The tool as the model knows it, prefix included.
        tool_call_id: The id of the tool call.
        args: The arguments as the model wrote them; text if they aren't JSON.
    """

    type: ClassVar[str] = "tool_call"
    tool_name: str
    tool_call_id: str
    args: Any


@frozen(kw_only=True)
class ToolResultEvent(EventBase):
    """A tool call ended.

    Args:
        tool_name: The tool as the model knows it, prefix included.
        tool_call_id: The id of the tool call.
        status: `success`; `failed` (it raised), `denied` (by policy or a person), `refused` (no such
            tool now, or wrong arguments), `timed_out` or `cancelled`.
        result: The result that the model got.
        duration: Seconds, without `waited`.
        size: Size of the result in bytes before it was truncated.
        waited: Seconds that it waited for a person's answer.
        args: The arguments it ran with, if a hook changed them; None if they are those of `tool_call`.
        error: What a failed call raised: `type`, `message`, `agent_path`; `file`, `line`, `hint` where known.
        decision: What was decided about the call: `effect`, `source`, `reason`, and `rule` and `place` if a rule
            decided; None if the call ended before that.
    """

    type: ClassVar[str] = "tool_result"
    tool_name: str
    tool_call_id: str
    status: str
    result: Any
    duration: float
    size: int
    waited: float = 0.0
    args: Any = None
    error: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class ApprovalRequestedEvent(EventBase):
    """A tool call waits for a person's answer.

    Args:
        tool_call_id: The id of the tool call.
        tool_name: The tool as the model knows it, prefix included.
        args: The arguments it would run with.
        rule: The rule that requires approval; None if no rule does.
        reason: Why the call needs approval.
    """

    type: ClassVar[str] = "approval_requested"
    tool_call_id: str
    tool_name: str
    args: Any
    rule: str | None
    reason: str = ""


@frozen(kw_only=True)
class ApprovalResolvedEvent(EventBase):
    """A tool call's approval was answered.

    Args:
        tool_call_id: The id of the tool call.
        tool_name: The tool as the model knows it, prefix included.
        decision: `allow` or `deny`.
        by: `person`; `remembered` if an earlier answer covers it; `cancelled` if the run ended while it waited.
    """

    type: ClassVar[str] = "approval_resolved"
    tool_call_id: str
    tool_name: str
    decision: str
    by: str


@frozen(kw_only=True)
class StateChangedEvent(EventBase):
    """A toolkit's context or states changed.

    Args:
        toolkit: Its prefix or name; the agent's name for the machine that `states` makes.
        updates: The keys of the context that changed, with their values.
        states: All unlocked states.
    """

    type: ClassVar[str] = "state_changed"
    toolkit: str
    updates: Any
    states: Any


@frozen(kw_only=True)
class HandoffEvent(EventBase):
    """One agent handed control to another; as JSON data the two are `from` and `to`.

    Args:
        source: The agent that hands over control.
        target: The agent that gets control.
        reason: The model's reason.
    """

    type: ClassVar[str] = "handoff"
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

    type: ClassVar[str] = "guard"
    guard: str
    side: str
    replacement: Any


@frozen(kw_only=True)
class RetryEvent(EventBase):
    """A model request failed for a transient reason and is retried after `delay` seconds, or sent to another model.

    Text deltas since the last `text_done` of this call are void.

    Args:
        attempt: Number of the failed attempt, from 1.
        delay: Seconds until the next attempt.
        error: The failure, as a sentence.
        model: The next model of the agent's list, which is asked now; None if the same one is asked again.
    """

    type: ClassVar[str] = "retry"
    attempt: int
    delay: float
    error: str
    model: str | None = None


@frozen(kw_only=True)
class ModelRequestEvent(EventBase):
    """A model request is sent.

    Args:
        model: The name that the model was requested by.
        request: The number of the agent's request in this call, from 1.
        attempt: How often it is made, from 1.
        purpose: `step` for an agent's request, `summary` for one that shortens its history.
    """

    type: ClassVar[str] = "model_request"
    model: str
    request: int
    attempt: int
    purpose: str = "step"


@frozen(kw_only=True)
class UsageEvent(EventBase):
    """What one attempt of a model request used; the sum over a run is the usage of its result.

    Args:
        usage: `requests`, `input_tokens`, `output_tokens`, `total_tokens`, and `cost_usd` or None.
        model: The name that the model was requested by.
        request: The number of the agent's request in this call, from 1.
        attempt: How often it was made, from 1.
        purpose: As in `model_request`.
    """

    type: ClassVar[str] = "usage"
    usage: Mapping[str, Any]
    model: str = ""
    request: int = 0
    attempt: int = 1
    purpose: str = "step"


@frozen(kw_only=True)
class WarningEvent(EventBase):
    """A warning that doesn't end the run.

    Args:
        message: A sentence.
    """

    type: ClassVar[str] = "warning"
    message: str


Event: TypeAlias = (
    RunStartedEvent
    | RunResumedEvent
    | RunFinishedEvent
    | RunFailedEvent
    | CallStartedEvent
    | CallFinishedEvent
    | TextEvent
    | TextDoneEvent
    | ThinkingEvent
    | ToolCallEvent
    | ToolResultEvent
    | ApprovalRequestedEvent
    | ApprovalResolvedEvent
    | StateChangedEvent
    | GuardEvent
    | HandoffEvent
    | ModelRequestEvent
    | RetryEvent
    | UsageEvent
    | WarningEvent
)
"""Any event of a run; distinguish them by `type`."""

EVENT_TYPES: tuple[str, ...] = tuple(kind.type for kind in get_args(Event))
"""The `type` of every event."""

FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in (EventBase, *get_args(Event))
}

_BY_TYPE: dict[object, Callable[..., Event]] = {kind.type: kind for kind in get_args(Event)}


def event_from_dict(data: Mapping[str, Any]) -> Event | None:
    """Return the event that `to_dict` wrote; None if this version has no such type, or a field is missing."""
    kind = _BY_TYPE.get(data.get("type"))
    if kind is None:
        return None
    values = {HANDOFF_ATTRIBUTES.get(name, name): value for name, value in data.items()}
    try:
        return kind(**{name: values[name] for name in FIELDS[cast("type", kind)] if name in values})
    except TypeError:
        return None

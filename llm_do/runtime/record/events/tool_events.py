"""What becomes of tool calls: their requests, approvals, results, and changes of state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.events.event_base import EventBase

__all__ = ["ApprovalRequestedEvent", "ApprovalResolvedEvent", "StateChangedEvent", "ToolCallEvent", "ToolResultEvent"]


@frozen(kw_only=True)
class ToolCallEvent(EventBase):
    """A model requested a tool call.

    Args:
        tool_name: The tool as the model knows it, prefix included.
        tool_call_id: The id of the tool call.
        args: The arguments as the model wrote them; text if they aren't JSON.
    """

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    tool_name: str
    tool_call_id: str
    args: Any


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

    type: ClassVar[Literal["approval_requested"]] = "approval_requested"
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

    type: ClassVar[Literal["approval_resolved"]] = "approval_resolved"
    tool_call_id: str
    tool_name: str
    decision: str
    by: str


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

    type: ClassVar[Literal["tool_result"]] = "tool_result"
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
class StateChangedEvent(EventBase):
    """A toolkit's context or states changed.

    Args:
        toolkit: Its prefix or name; the agent's name for the machine that `states` makes.
        updates: The keys of the context that changed, with their values.
        states: All unlocked states.
    """

    type: ClassVar[Literal["state_changed"]] = "state_changed"
    toolkit: str
    updates: Any
    states: Any

"""Outcomes of calls as values that can be written, read back, shown and replayed.

A `ToolOutcome` is created where a tool call ends; its event, its journal entry and the model's view are derived from
it. A `CallOutcome` is created where the call of an agent, a flow or a function ends. The outcome of a model request
is in `llm_do.runtime.record.request_outcome`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import Status
from llm_do.policy.values import Decision
from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.results import CallRecord, ErrorRecord, Usage, messages_data

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_ai.messages import ModelMessage, ToolReturn

    from llm_do.machines.machine import ToolkitState

__all__ = ["CallOutcome", "StateChange", "ToolOutcome", "ToolOutput", "ToolStatus"]

ToolStatus = Literal["success", "failed", "denied", "refused", "timed_out", "cancelled"]
"""How a tool call ended; `ToolResultEvent` explains each value."""


@frozen
class ToolOutput:
    """The output of a tool call, within the limit on results.

    Args:
        for_model: The output for the model: JSON data, media, or a PydanticAI `ToolReturn`.
        for_events: The same as JSON data; media are named in brackets.
        size: Size in bytes before truncation; None means the size of the text for events.
    """

    for_model: Any
    for_events: Any
    size: int | None = None

    @classmethod
    def of_text(cls, text: str) -> ToolOutput:
        """Return the output of a call that ends with a sentence instead of a result."""
        return cls(text, text)

    @property
    def byte_count(self) -> int:
        """The size in bytes before truncation."""
        return len(str(self.for_events).encode("utf-8", "replace")) if self.size is None else self.size

    def to_dict(self) -> dict[str, Any]:
        """Return the output as JSON data; the model's output only if it differs from that for events."""
        data: dict[str, Any] = {"for_events": self.for_events, "size": self.size}
        if self.for_model is not self.for_events:
            data["for_model"] = _write_return(self.for_model)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolOutput:
        """Return the output that `to_dict` wrote."""
        shown = data["for_events"]
        return cls(_read_return(data["for_model"]) if "for_model" in data else shown, shown, data["size"])


@frozen
class StateChange:
    """A successful call's change to one state machine.

    Args:
        toolkit: The machine's key in its agent.
        updates: The keys of its context that changed, with their values.
        state: Its state afterwards.
    """

    toolkit: str
    updates: Mapping[str, Any]
    state: ToolkitState

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON data."""
        return {"toolkit": self.toolkit, "updates": dict(self.updates), "state": self.state.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StateChange:
        """Return the change that `to_dict` wrote."""
        return cls(data["toolkit"], data["updates"], toolkit_states({"": data["state"]})[""])


@frozen
class ToolOutcome:
    """How one tool call ended.

    Args:
        tool_name: The tool as the model knows it, prefix included.
        tool_call_id: The call's id.
        status: How it ended.
        output: Its output.
        error: The failure and its location; None for a call that succeeded or didn't run.
        decision: The policy's decision; None if the call ended before it.
        changes: Its changes to the state machines that its tool belongs to.
        duration: Seconds, without `waited`.
        waited: Seconds that it waited for a person's answer.
        args: The arguments it ran with, if a hook changed them; None if they are the model's.
    """

    tool_name: str
    tool_call_id: str
    status: ToolStatus
    output: ToolOutput
    error: ErrorRecord | None = None
    decision: Decision | None = None
    changes: tuple[StateChange, ...] = ()
    duration: float = 0.0
    waited: float = 0.0
    args: Mapping[str, Any] | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the tool ran and returned a result."""
        return self.status == "success"

    def event_data(self) -> dict[str, Any]:
        """Return the fields of the event `tool_result`."""
        return {
            "tool_name": self.tool_name,
            "tool_call_id": self.tool_call_id,
            "status": self.status,
            "result": self.output.for_events,
            "duration": self.duration,
            "waited": self.waited,
            "size": self.output.byte_count,
            "args": self.args,
            "error": self.error.to_dict() if self.error is not None else None,
            "decision": _decision_data(self.decision) if self.decision is not None else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data that `from_dict` reads back."""
        return {
            "tool_name": self.tool_name,
            "tool_call_id": self.tool_call_id,
            "status": self.status,
            "output": self.output.to_dict(),
            "error": self.error.to_dict() if self.error is not None else None,
            "decision": asdict(self.decision) if self.decision is not None else None,
            "changes": [change.to_dict() for change in self.changes],
            "duration": self.duration,
            "waited": self.waited,
            "args": self.args,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolOutcome:
        """Return the outcome that `to_dict` wrote."""
        return cls(
            data["tool_name"],
            data["tool_call_id"],
            data["status"],
            ToolOutput.from_dict(data["output"]),
            ErrorRecord(**data["error"]) if data["error"] is not None else None,
            Decision(**data["decision"]) if data["decision"] is not None else None,
            tuple(StateChange.from_dict(change) for change in data["changes"]),
            data["duration"],
            data.get("waited", 0.0),
            data.get("args"),
        )


@frozen
class CallOutcome:
    """How one call of an agent, a flow or a function ended.

    Args:
        call_id: The call's id.
        path: Call path, such as `main/analyst`.
        status: How it ended.
        output: Its output, as JSON data.
        error: The error that ended it early.
        usage: Its own usage, without that of the calls it made.
        steps: Model responses it got itself.
        messages: Its own history; empty for a function.
    """

    call_id: str
    path: str
    status: Status
    output: Any = None
    error: ErrorRecord | None = None
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"], repr=False)

    def record(self) -> CallRecord:
        """Return the record for `RunResult.calls`."""
        return CallRecord(self.call_id, self.path, self.status, self.usage, self.steps, self.messages, self.error)

    def event_data(self) -> dict[str, Any]:
        """Return the fields of the event `call_finished`."""
        return {"status": self.status, "output": self.output}

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data that `from_dict` reads back."""
        return {
            "call_id": self.call_id,
            "path": self.path,
            "status": self.status,
            "output": self.output,
            "error": self.error.to_dict() if self.error is not None else None,
            "usage": self.usage.to_dict(),
            "steps": self.steps,
            "messages": messages_data(self.messages),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CallOutcome:
        """Return the outcome that `to_dict` wrote."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        return cls(
            data["call_id"],
            data["path"],
            data["status"],
            data["output"],
            ErrorRecord(**data["error"]) if data["error"] is not None else None,
            Usage.from_dict(data["usage"]),
            data["steps"],
            ModelMessagesTypeAdapter.validate_python(data["messages"]),
        )


def _decision_data(decision: Decision) -> dict[str, str]:
    """A decision for people: what was decided, by what, and why."""
    data: dict[str, str] = {"effect": decision.effect, "source": decision.source, "reason": decision.reason}
    found = {"rule": decision.rule, "place": decision.place}
    return data | {name: value for name, value in found.items() if value is not None}


@cache
def _tool_return() -> TypeAdapter[ToolReturn[Any]]:
    from pydantic import TypeAdapter
    from pydantic_ai.messages import ToolReturn

    return TypeAdapter(ToolReturn)


def _write_return(value: object) -> Any:
    """Return the model's output as JSON data in PydanticAI's own form, which preserves media."""
    from pydantic_ai.messages import ToolReturn

    returned = cast("ToolReturn[Any]", value) if isinstance(value, ToolReturn) else ToolReturn(cast("Any", value))
    return _tool_return().dump_python(returned, mode="json", fallback=str)


def _read_return(data: object) -> Any:
    returned = _tool_return().validate_python(data)
    if returned.content is None and returned.metadata is None and returned.tools is None:
        return returned.return_value
    return returned

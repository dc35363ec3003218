"""Recorded results of tools: as values, as they are written in a cassette, and as what a tool returns or raises."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic_ai import ModelRetry, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart, UserPromptPart

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.runtime.record.canonical_messages import canonical_text
from llm_do.runtime.record.transport import ToolTimedOutError
from llm_do.text.json_data import to_json_data

ENDINGS = ("returned", "failed", "timed_out", "needs_approval")
"""How a tool's call may have ended."""

__all__ = ["ENDINGS", "RecordedTool", "answer_of", "natural", "raised_data", "returned_data"]


@frozen
class RecordedTool:
    """One call of a tool that was carried out while recording.

    Args:
        call: The id of the call that made it, as those of requests.
        path: The call's path.
        tool: The tool.
        tool_call: The tool call's number in its call, such as `call_2`.
        args: Its arguments, as data.
        ended: How it ended: what it `returned`, or how it `failed`.
    """

    call: str
    path: str
    tool: str
    tool_call: str
    args: Mapping[str, Any]
    ended: Mapping[str, Any]

    @property
    def what(self) -> str:
        """What was recorded, in a few words."""
        return f"{self.tool} of {self.path}"

    @property
    def order(self) -> tuple[object, ...]:
        """Where it stands in the file."""
        return natural(self.call), natural(self.tool_call)

    @property
    def key(self) -> str:
        """Equal for calls that have the same result."""
        return f"{self.tool}({canonical_text(dict(sorted(self.args.items())))})"

    def to_dict(self) -> dict[str, Any]:
        """The call as JSON data."""
        row = {"call": self.call, "path": self.path, "tool": self.tool, "tool_call": self.tool_call}
        return {**row, "args": dict(self.args), **self.ended}


def natural(call: str) -> tuple[tuple[int, str], ...]:
    """A call's id with its numbers as numbers."""
    words: Iterable[str] = re.findall(r"[0-9]+|[^0-9]+", call)
    return tuple((int(word), "") if word[0] in "0123456789" and len(word) < 20 else (0, word) for word in words)


def returned_data(value: object) -> dict[str, Any]:
    """What a tool returned, as JSON data."""
    if not isinstance(value, ToolReturn):
        return {"returned": _content(value)}
    found = {"returned": _content(value.return_value)}
    if value.content:
        (message,) = ModelMessagesTypeAdapter.dump_python([ModelRequest([UserPromptPart(value.content)])], mode="json")
        found["content"] = message["parts"][0]["content"]
    return found


def _content(value: object) -> Any:
    """A result as the model gets it, images included."""
    try:
        part = ToolReturnPart("tool", value, "id")
        (message,) = ModelMessagesTypeAdapter.dump_python([ModelRequest([part])], mode="json")
    except ValueError:  # a value that PydanticAI has no form for
        return to_json_data(value)
    return message["parts"][0].get("content")


def raised_data(error: BaseException) -> dict[str, Any]:
    """What a tool raised, as JSON data."""
    if isinstance(error, ApprovalRequired):
        return {"needs_approval": to_json_data(error.metadata or {})}
    # PydanticAI raises an error of its own from a retry that a tool asks for.
    for one in (error, error.__cause__):
        if isinstance(one, ModelRetry | ToolFailed):
            return {"failed": {"type": type(one).__name__, "message": one.message}}
        if isinstance(one, ToolError):
            hint = {"hint": one.hint} if one.hint else {}
            return {"failed": {"type": "ToolError", "message": one.message, **hint}}
    return {"failed": {"type": type(error).__name__, "message": str(error)}}


def answer_of(ended: Mapping[str, Any]) -> Any:
    """What the tool returned; raises what it raised."""
    if "needs_approval" in ended:
        raise ApprovalRequired(metadata=dict(ended["needs_approval"]))
    if ended.get("timed_out"):
        raise ToolTimedOutError
    if "failed" in ended:
        raise _error(ended["failed"])
    value = _value("tool-return", ended["returned"])
    if "content" not in ended:
        return value
    return ToolReturn(value, content=_value("user-prompt", ended["content"]))


def _value(part_kind: str, content: Any) -> Any:
    """Data with what stands for images and documents in it."""
    part = {"part_kind": part_kind, "tool_name": "tool", "tool_call_id": "id", "content": content}
    (message,) = ModelMessagesTypeAdapter.validate_python([{"kind": "request", "parts": [part]}])
    return cast("Sequence[ToolReturnPart]", message.parts)[0].content


def _error(failed: Mapping[str, Any]) -> Exception:
    message = failed["message"]
    match failed["type"]:
        case "ModelRetry":
            return ModelRetry(message)
        case "ToolFailed":
            return ToolFailed(message)
        case "ToolError":
            return ToolError(message, hint=failed.get("hint"))
        case name:
            return type(name, (Exception,), {})(message)

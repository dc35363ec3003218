"""Which part of a stored history can be sent to a model: never one that starts with an orphaned tool result."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart, ToolReturnPart

__all__ = ["is_valid", "usable_part"]


def usable_part(messages: Sequence[ModelMessage], *, complete: bool = False) -> list[ModelMessage]:
    """Return the messages from the first user prompt on; a complete history may also start with something else."""
    for index, message in enumerate(messages):
        kinds = {part.part_kind for part in message.parts} if isinstance(message, ModelRequest) else set[str]()
        if complete and index == 0 and not kinds & _ANSWERS:
            return list(messages)
        if "user-prompt" in kinds and not kinds & _ANSWERS:
            return list(messages[index:])
    return []


def is_valid(messages: Sequence[ModelMessage]) -> bool:
    """Check that the results of each message's tool calls come in order in the next request, and no others.

    The calls of the last message may still be open.
    """
    pending: list[str] = []
    for message in messages:
        results = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
        if results != pending:
            return False
        pending = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        if len(set(pending)) != len(pending):
            return False
    return True


_ANSWERS = {"tool-return", "retry-prompt"}

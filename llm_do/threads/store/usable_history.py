"""Which part of a stored history a model may be sent: never one that begins with a result nobody asked for."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart, ToolReturnPart

__all__ = ["is_valid", "usable_part"]


def usable_part(messages: Sequence[ModelMessage], *, whole: bool = False) -> list[ModelMessage]:
    """The part of a window on a history that begins with something a person said."""
    for index, message in enumerate(messages):
        kinds = {part.part_kind for part in message.parts} if isinstance(message, ModelRequest) else set[str]()
        if whole and index == 0 and not kinds & _ANSWERS:
            return list(messages)
        if "user-prompt" in kinds and not kinds & _ANSWERS:
            return list(messages[index:])
    return []


def is_valid(messages: Sequence[ModelMessage]) -> bool:
    """Whether each tool call has exactly one result, in order in the request right after it, and each result a call.

    The calls of the last message may still be open.
    """
    asked: list[str] = []
    for message in messages:
        results = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
        if results != asked:
            return False
        asked = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        if len(set(asked)) != len(asked):
            return False
    return True


_ANSWERS = {"tool-return", "retry-prompt"}

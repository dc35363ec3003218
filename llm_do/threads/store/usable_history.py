"""Which part of a stored history can be sent to a model: never one that starts with an orphaned tool result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["is_valid", "starts_turn", "usable_part"]


def starts_turn(message: ModelMessage) -> bool:
    """Whether a turn begins with a message: a person's prompt, without results of tool calls."""
    kinds = _kinds(message)
    return "user-prompt" in kinds and not kinds & _ANSWERS


def usable_part(messages: Sequence[ModelMessage], *, complete: bool) -> list[ModelMessage]:
    """Return the messages from the first user prompt on; a complete history may also start with something else."""
    for index, message in enumerate(messages):
        if complete and index == 0 and not _kinds(message) & _ANSWERS:
            return list(messages)
        if starts_turn(message):
            return list(messages[index:])
    return []


def _kinds(message: ModelMessage) -> set[str]:
    return {part.part_kind for part in message.parts} if message.kind == "request" else set()


def is_valid(messages: Sequence[ModelMessage]) -> bool:
    """Check that the results of each message's tool calls come in order in the next request, and no others.

    The calls of the last message may still be open.
    """
    pending: list[str] = []
    for message in messages:
        results = [part.tool_call_id for part in message.parts if part.part_kind == "tool-return"]
        if results != pending:
            return False
        pending = [part.tool_call_id for part in message.parts if part.part_kind == "tool-call"]
        if len(set(pending)) != len(pending):
            return False
    return True


_ANSWERS = {"tool-return", "retry-prompt"}

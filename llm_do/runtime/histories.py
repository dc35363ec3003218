"""Closing a history: wherever a run ended, the next one can continue, and a strict provider accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, repair_messages

__all__ = ["closed"]


def closed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """A history in which each tool call has exactly one result, right after it and in the order it was asked.

    Args:
        messages: What was captured of a run that ended early.

    Returns:
        The history; calls that have no result get one that says they were interrupted.
    """
    repaired = repair_messages(messages)
    for index, message in enumerate(repaired[1:], 1):
        before = repaired[index - 1]
        if isinstance(message, ModelRequest) and isinstance(before, ModelResponse) and before.tool_calls:
            repaired[index] = _in_order(message, [call.tool_call_id for call in before.tool_calls])
    return repaired


def _in_order(request: ModelRequest, ids: list[str]) -> ModelRequest:
    def place(part: Any) -> int:
        return (
            ids.index(part.tool_call_id) if isinstance(part, ToolReturnPart) and part.tool_call_id in ids else len(ids)
        )

    parts = sorted(request.parts, key=place)
    return request if parts == list(request.parts) else replace(request, parts=parts)

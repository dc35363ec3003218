"""Histories: what a run continues from, and closing one, so that it can be and a strict provider accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, repair_messages

from llm_do.errors import InputError
from llm_do.runtime.record.results import ExecutionContext

__all__ = ["close_history", "continue_history"]


def continue_history(messages: object, context: object) -> list[ModelMessage]:
    """The conversation that a run continues."""
    if not isinstance(context, ExecutionContext | None):
        raise InputError(
            f"execution_context is a {type(context).__name__}", hint="Give the `execution_context` of a `RunResult`."
        )
    given: Any = messages or (context.messages if context is not None else ())
    history: list[Any] = [*given] if hasattr(given, "__iter__") else [given]
    for index, message in enumerate(history):
        if not isinstance(message, ModelRequest | ModelResponse):
            raise InputError(
                f"messages has a {type(message).__name__} at {index}, which is no message of PydanticAI's",
                hint="Give a result's `messages`; read JSON with `pydantic_ai.messages.ModelMessagesTypeAdapter`.",
            )
    return history


def close_history(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """A history in which each tool call has exactly one result, right after it and in the order it was asked."""
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

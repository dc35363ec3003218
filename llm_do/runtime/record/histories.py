"""Histories: reads the one that a run continues, and repairs one so that strict providers accept it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, repair_messages

from llm_do.errors import InputError
from llm_do.runtime.record.results import ExecutionContext

__all__ = ["as_history", "close_history", "continue_history", "find_unpaired_call"]


def continue_history(messages: object, context: object) -> list[ModelMessage]:
    """Return the conversation that a run continues."""
    if not isinstance(context, ExecutionContext | None):
        raise InputError(
            f"execution_context is a {type(context).__name__}", hint="Pass the `execution_context` of a `RunResult`."
        )
    source: Any = messages or (context.messages if context is not None else ())
    history: list[Any] = [*source] if hasattr(source, "__iter__") else [source]
    return as_history(history)


def as_history(messages: Sequence[Any]) -> list[ModelMessage]:
    """Return messages of PydanticAI's, of `llm_do.messages`, or in OpenAI's format, as a history of PydanticAI's."""
    if all(isinstance(message, ModelRequest | ModelResponse) for message in messages):
        return list(messages)
    from llm_do.messages import from_messages

    try:
        return from_messages(messages)
    except ValueError as error:
        raise InputError(f"messages can't be read: {error}", hint=_MESSAGES) from error


_MESSAGES = (
    "Pass a result's `messages`, messages of `llm_do.messages`, or dicts with `role` and `content`; read JSON of a "
    "result with `pydantic_ai.messages.ModelMessagesTypeAdapter`."
)


def close_history(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return a history in which each tool call has exactly one result, directly after it and in call order."""
    repaired = repair_messages(messages)
    for index, message in enumerate(repaired[1:], 1):
        before = repaired[index - 1]
        if isinstance(message, ModelRequest) and isinstance(before, ModelResponse) and before.tool_calls:
            repaired[index] = _in_order(message, [call.tool_call_id for call in before.tool_calls])
    return repaired


def find_unpaired_call(messages: Sequence[ModelMessage]) -> str | None:
    """Find a tool call of a history without exactly one result before the next response; None if there is none.

    Example:
        >>> from pydantic_ai.messages import ToolCallPart
        >>> find_unpaired_call([ModelResponse(parts=[ToolCallPart("add")])])
        'a call of add without its result'
    """
    asked: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            if asked:
                break
            asked = {call.tool_call_id: call.tool_name for call in message.tool_calls}
            continue
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and asked.pop(part.tool_call_id, None) is None:
                return f"a result of {part.tool_name} that belongs to no call"
    return f"a call of {next(iter(asked.values()))} without its result" if asked else None


def _in_order(request: ModelRequest, ids: list[str]) -> ModelRequest:
    def place(part: Any) -> int:
        return (
            ids.index(part.tool_call_id) if isinstance(part, ToolReturnPart) and part.tool_call_id in ids else len(ids)
        )

    parts = sorted(request.parts, key=place)
    return request if parts == list(request.parts) else replace(request, parts=parts)

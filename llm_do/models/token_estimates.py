"""Estimate token counts: about four characters of English make one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    is_multi_modal_content,
)
from pydantic_ai.models import ModelRequestParameters

__all__ = [
    "count_characters",
    "estimate_request_tokens",
    "estimate_response_tokens",
    "estimate_text_tokens",
    "estimate_tokens",
    "estimate_tool_tokens",
]

CHARACTERS = 4
"""Characters per token."""

MEDIA = 1_000 * CHARACTERS
"""Characters that an image or another file counts as: providers charge by pixels or pages, not by bytes."""


def estimate_tokens(messages: Sequence[ModelMessage]) -> int:
    """Estimate the tokens of a message history."""
    characters = sum(count_characters(part) for message in messages for part in message.parts)
    return characters // CHARACTERS + 4 * len(messages)


def estimate_text_tokens(text: str) -> int:
    """Estimate the tokens of a text.

    Example:
        >>> estimate_text_tokens("Good morning")
        3
    """
    return len(text) // CHARACTERS


def estimate_tool_tokens(parameters: ModelRequestParameters) -> int:
    """Estimate the tokens of a request's tool definitions."""
    characters = sum(
        len(tool.name) + len(tool.description or "") + len(str(tool.parameters_json_schema))
        for tool in parameters.function_tools
    )
    return characters // CHARACTERS


def estimate_request_tokens(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """Estimate the tokens of a request: its history, tool definitions and instructions."""
    last = messages[-1] if messages else None
    instructions = (last.instructions or "") if isinstance(last, ModelRequest) else ""
    return estimate_tokens(messages) + estimate_tool_tokens(parameters) + estimate_text_tokens(instructions)


def estimate_response_tokens(response: ModelResponse) -> int:
    """Estimate the tokens of a response; one that holds anything has at least one."""
    characters = sum(map(count_characters, response.parts))
    return max(characters // CHARACTERS, 1) if characters else 0


def count_characters(part: Any) -> int:
    """Count the characters of a message part; a file counts as `MEDIA`."""
    if isinstance(part, ToolCallPart):
        return len(part.tool_name) + len(part.args_as_json_str())
    content = getattr(part, "content", "")
    if isinstance(content, str):
        return len(content)
    if is_multi_modal_content(content):
        return MEDIA
    if isinstance(content, list | tuple):
        items = cast("Sequence[object]", content)
        if not isinstance(part, ToolReturnPart) or any(is_multi_modal_content(item) for item in items):
            return sum(MEDIA if is_multi_modal_content(item) else len(str(item)) for item in items)
    return len(part.model_response_str()) if isinstance(part, ToolReturnPart) else len(str(part.content))

"""A model's answer, checked: every text in it is one, and can be written down.

Libraries don't validate what a stream brings, nor anyone what a project's own model returns. A number in place of a
text would fail far away, or be kept in a conversation that then can't be sent any more. Halves of characters, which a
model may write, are replaced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data
from llm_do.text.words import with_article

__all__ = ["check_response", "check_text", "replace_surrogates_in_response"]


def check_response(response: object, model: str) -> ModelResponse:
    """Return a response whose parts are what they should be.

    Args:
        response: What a model returned.
        model: The model's name.

    Raises:
        ModelAPIError: A part has something else where a text or arguments should be.
    """
    if not isinstance(response, ModelResponse):
        raise ModelAPIError(model, f"the answer is {_kind(response)}, not a ModelResponse")
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            check_text(part.content, model)
        elif isinstance(part, BaseToolCallPart):
            check_text(part.tool_name, model, "the name of a tool call")
            check_text(part.tool_call_id, model, "the id of a tool call")
            args = cast("object", part.args)
            if not isinstance(args, str | dict | None):
                raise ModelAPIError(model, f"the arguments of a tool call in the answer are {_kind(args)}")
    return response


def check_text(text: object, model: str, what: str = "a text") -> str:
    """Return what is a text.

    Raises:
        ModelAPIError: It isn't one.
    """
    if not isinstance(text, str):
        raise ModelAPIError(model, f"{what} in the answer is {_kind(text)}")
    return text


def _kind(value: object) -> str:
    return "null" if value is None else with_article(type(value).__name__)


def replace_surrogates_in_response(response: ModelResponse) -> ModelResponse:
    """A model's response without lone surrogates in what it says and asks for."""
    parts = [_whole_part(part) for part in response.parts]
    changed = any(new is not old for new, old in zip(parts, response.parts, strict=True))
    return replace(response, parts=parts) if changed else response


def _whole_part(part: ModelResponsePart) -> ModelResponsePart:
    if isinstance(part, TextPart | ThinkingPart):
        content = replace_surrogates(part.content)
        return part if content == part.content else replace(part, content=content)
    if isinstance(part, ToolCallPart):
        name, args, call_id = (
            replace_surrogates(part.tool_name),
            replace_surrogates_in_data(part.args),
            replace_surrogates(part.tool_call_id),
        )
        if (name, args, call_id) != (part.tool_name, part.args, part.tool_call_id):
            return replace(part, tool_name=name, args=args, tool_call_id=call_id)
    return part

"""A model's answer with texts that can be written down: halves of characters, which a model may write, are replaced."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data

__all__ = ["replace_surrogates_in_response"]


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

"""Text that can be written down: halves of characters, which models, tools and file names bring along, are replaced.

A lone surrogate can be in a string and in no file, request or terminal. Nothing else of a text is changed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart

__all__ = ["replace_surrogates", "replace_surrogates_in_data", "replace_surrogates_in_response"]


def replace_surrogates(text: str) -> str:
    """A text without lone surrogates; two that make a character together become it.

    Example:
        >>> replace_surrogates("a\\ud83d\\ude00b"), replace_surrogates("a\\ud800b") == "a\\ufffdb"
        ('a😀b', True)
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def replace_surrogates_in_data(value: Any) -> Any:
    """JSON data whose texts, names of fields included, have no lone surrogates; other values stay what they are."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            replace_surrogates_in_data(key): replace_surrogates_in_data(item)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list):
        return [replace_surrogates_in_data(item) for item in cast("list[Any]", value)]
    return value


def replace_surrogates_in_response(response: ModelResponse) -> ModelResponse:
    """A model's response without lone surrogates in what it says and asks for."""
    parts = [_whole_part(part) for part in response.parts]
    changed = any(new is not old for new, old in zip(parts, response.parts, strict=True))
    return replace(response, parts=parts) if changed else response


def _whole_part(part: ModelResponsePart) -> ModelResponsePart:
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart  # heavy, and most texts aren't a model's

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

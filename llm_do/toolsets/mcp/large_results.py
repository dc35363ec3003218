"""What a tool's large result comes to: made in a worker thread, as PydanticAI makes it of a small one on the loop.

A large result doesn't pass through the SDK, FastMCP and PydanticAI, which look at all of it several times in one go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import BinaryContent

from llm_do.toolsets.mcp.large_json import read_large_json

if TYPE_CHECKING:
    from pydantic_ai.mcp import MCPToolset

__all__ = ["call_tool", "set_result", "small_result"]

_PART = 2**20
"""Characters of base64 that are decoded in one go."""

_LONGEST_FAILURE = 2**16

_results: ContextVar[list[object] | None] = ContextVar("large_results", default=None)


async def call_tool(client: MCPToolset[Any], name: str, args: dict[str, Any]) -> Any:
    """Call a tool; return its result as PydanticAI does, or the large one that was set meanwhile."""
    results: list[object] = []
    token = _results.set(results)
    try:
        small = await client.direct_call_tool(name, args)
    finally:
        _results.reset(token)
    return results[-1] if results else small


def set_result(value: object) -> bool:
    """Set the large result of the call that this task is for; return whether there is one."""
    results = _results.get()
    if results is None:
        return False
    results.append(value)
    return True


def small_result(result: Mapping[str, object]) -> tuple[dict[str, object], object]:
    """Return what the SDK gets in the place of a large result, and the value of the call; None if it failed.

    Raises:
        ValueError: It isn't a tool's result.
    """
    parts = result.get("content")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in cast("list[object]", parts)):
        raise ValueError("it has no list of `content`")
    content = cast("list[dict[str, object]]", parts)
    rest = {key: value for key, value in result.items() if isinstance(value, bool | str)}
    if result.get("isError") is True:
        texts = [text for part in content if isinstance(text := part.get("text"), str)]
        message = "\n".join(text[:_LONGEST_FAILURE] for text in texts[:100])[:_LONGEST_FAILURE]
        return {**rest, "content": [{"type": "text", "text": message}]}, None
    return {**rest, "content": []}, _value(content, result.get("structuredContent"))


def _value(content: Sequence[Mapping[str, object]], structured: object) -> object:
    if structured is not None and all(part.get("type") == "text" for part in content):
        if isinstance(structured, dict) and structured.keys() == {"result"}:
            return cast("dict[str, object]", structured)["result"]
        return cast("object", structured)
    values = [_part_value(part) for part in content]
    return values[0] if len(values) == 1 else values


def _part_value(part: Mapping[str, object]) -> object:
    kind = part.get("type")
    if kind == "text":
        text = _text(part, "text")
        if text.startswith(("[", "{")):
            try:
                return read_large_json(text)
            except ValueError:
                return text
        return text
    if kind in ("image", "audio"):
        return _media(part, "data", _text(part, "mimeType"))
    if kind == "resource_link":
        return _text(part, "uri")
    resource = part.get("resource")
    if kind != "resource" or not isinstance(resource, dict):
        raise ValueError(f"it has a part of type {kind!r:.100}")
    contents = cast("dict[str, object]", resource)
    if "text" in contents:
        return _text(contents, "text")
    media_type = contents.get("mimeType")
    return _media(contents, "blob", media_type if isinstance(media_type, str) else "application/octet-stream")


def _text(part: Mapping[str, object], key: str) -> str:
    if not isinstance(text := part.get(key), str):
        raise ValueError(f"it has a part without `{key}`")
    return text


def _media(part: Mapping[str, object], key: str, media_type: str) -> BinaryContent:
    text = _text(part, key)
    try:
        data = b"".join(base64.b64decode(text[at : at + _PART]) for at in range(0, len(text), _PART))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"its `{key}` isn't base64: {error}") from error
    return BinaryContent.narrow_type(BinaryContent(data=data, media_type=media_type))

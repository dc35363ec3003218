"""A message as a model gets it: canonical data that is equal wherever the same is sent, its text, and its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_jsonable_python

from llm_do.text.large_data.conversion import is_large

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = [
    "MANY",
    "canonical_message",
    "canonical_text",
    "chain",
    "content_digest",
    "dumped",
    "is_large_history",
    "is_large_message",
    "message_data",
    "ordered_part",
    "without_provider_ids",
]

NOT_SENT = frozenset((
    "attempts", "canonical_system", "context_id", "conversation_id", "dynamic_ref", "finish_reason", "id",
    "instructions", "metadata", "model_id", "model_name", "provider_name", "provider_response_id", "provider_url",
    "run_id", "state", "timestamp", "usage",
))  # fmt: skip
"""Keys of messages and parts that providers don't receive, or that name a machine, a clock or a response."""

LEADING = ("part_kind", "tool_name", "tool_call_id", "args", "content")
"""Keys of parts in the order in which they are written; all others follow by name."""

MANY = 50
"""More messages than these are written and read in a worker thread."""

_OF_THE_PROVIDER = re.compile(r"(?:^|_)(?:id|ids|timestamp|created|created_at|fingerprint)$")
"""Names of a provider's own ids and clocks."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_SENT = {"__all__": {"kind", "parts"}}
"""What is read of a message."""


def canonical_text(data: object) -> str:
    """Data as JSON that is the same for equal data; a model reads keys in their order, so that counts."""
    return _encode(data)


def content_digest(text: str) -> str:
    """The digest of a message's canonical text, or of another part of a request."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def chain(digest: str, content: str) -> str:
    """The digest of a history that one more message follows, of the digests of both."""
    return content_digest(f"{digest}\n{content}")


def is_large_message(message: ModelMessage) -> bool:
    """Whether a message has a part so large, such as a picture, that it is written and read in a worker thread."""
    return any(
        is_large(getattr(part, "content", None)) or is_large(getattr(part, "args", None)) for part in message.parts
    )


def is_large_history(messages: Sequence[ModelMessage]) -> bool:
    """Whether messages are so many, or one of them is so large, that a worker thread writes and reads them."""
    return len(messages) > MANY or any(map(is_large_message, messages))


def message_data(message: ModelMessage, number: Callable[[str], str], sign: Callable[[str], str]) -> dict[str, Any]:
    """A message as canonical data, with its tool calls named by `number` and its signatures by `sign`."""
    (data,) = dumped([message])
    return canonical_message(data, number, sign)


def dumped(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Messages as data, all in one call, since most of its time goes into its beginning."""
    try:
        return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", include=_SENT)
    except ValueError:  # a value that isn't data, such as an object in a tool's metadata
        return [
            to_jsonable_python(message, fallback=str, bytes_mode="base64", serialize_unknown=True)
            for message in messages
        ]


def canonical_message(
    data: Mapping[str, Any], number: Callable[[str], str], sign: Callable[[str], str]
) -> dict[str, Any]:
    return {"kind": data["kind"], "parts": [_canonical(part, number, sign) for part in data["parts"]]}


def _canonical(part: Mapping[str, Any], number: Callable[[str], str], sign: Callable[[str], str]) -> dict[str, Any]:
    found = {
        name: value
        for name, value in part.items()
        if name not in NOT_SENT and value is not None and value != "" and (name, value) != ("outcome", "success")
    }
    if (call := part.get("tool_call_id")) is not None:
        found["tool_call_id"] = number(call)
    if signature := part.get("signature"):
        found["signature"] = sign(signature)
    if "args" in found:
        found["args"] = _arguments(found["args"])
    if isinstance(found.get("content"), list | dict):
        found["content"] = _content(found["content"])
    if (details := found.pop("provider_details", None)) and (kept := without_provider_ids(details)):
        found["provider_details"] = kept
    return ordered_part(found)


def ordered_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part with its keys in the order in which they are written."""
    found = {name: part[name] for name in LEADING if name in part}
    if len(found) < len(part):
        found |= {name: part[name] for name in sorted(part) if name not in found}
    return found


def without_provider_ids(data: Any) -> Any:
    """What a provider reports in addition to its answer, without its own ids and clocks."""
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data).items()
        return {name: without_provider_ids(value) for name, value in items if not _OF_THE_PROVIDER.search(name)}
    if isinstance(data, list):
        return [without_provider_ids(each) for each in cast("list[Any]", data)]
    return data


def _arguments(args: object) -> object:
    """Arguments as data; text that isn't JSON stays text."""
    if not isinstance(args, str):
        return args
    try:
        return json.loads(args)
    except (ValueError, RecursionError):
        return args


def _content(content: object) -> object:
    """Content with each attachment's digest instead of its bytes."""
    if isinstance(content, list):
        return [_content(each) for each in cast("list[object]", content)]
    if not isinstance(content, dict):
        return content
    data = cast("dict[str, Any]", content)
    if data.get("kind") == "binary" and isinstance(data.get("data"), str):
        return data | {"data": f"sha256:{content_digest(data['data'])}"}
    if isinstance(url := data.get("url"), str) and url.startswith("data:"):
        return data | {"url": f"data:sha256:{content_digest(url)}"}
    return {name: _content(value) for name, value in data.items()}

"""Histories as they are sent: a model's own invalid names never go back to a provider, which would refuse them.

The history itself keeps what the model wrote.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest

__all__ = ["SendableHistory", "substitute_id"]

LONGEST = 64
"""Characters of a tool's name, and of a call's id, that every provider takes."""

UNNAMED = "unnamed"
"""The name that is sent for a call without one."""

NAMED = frozenset({"tool-call", "tool-return", "retry-prompt"})
"""Kinds of parts that name a tool and have the id of a call."""

_ODD_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ODD_ID = re.compile(r"[^!-~]")


class SendableHistory:
    """The history of one call, request by request; what hasn't changed since the last request isn't checked again."""

    __slots__ = ("_count", "_last")

    def __init__(self) -> None:
        self._count = 0
        self._last: ModelMessage | None = None

    def of(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Return a history with names and ids of calls that providers take; the same list if all are."""
        known = self._count
        start = known if 0 < known <= len(messages) and messages[known - 1] is self._last else 0
        if any(_is_odd(message) for message in messages[start:]):
            return [_mended(message) if _is_odd(message) else message for message in messages]
        self._count, self._last = len(messages), messages[-1] if messages else None
        return messages


def _is_odd(message: ModelMessage) -> bool:
    return any(_mended_part(part) is not part for part in message.parts)


def _mended(message: ModelMessage) -> ModelMessage:
    if isinstance(message, ModelRequest):
        return replace(message, parts=[_mended_part(part) for part in message.parts])
    return replace(message, parts=[_mended_part(part) for part in message.parts])


def _mended_part(part: Any) -> Any:
    if part.part_kind in NAMED:
        name, call_id = part.tool_name, part.tool_call_id
        sent_name, sent_id = name if name is None else _sent_name(name), _sent_id(call_id)
        if sent_name != name or sent_id != call_id:
            return replace(part, tool_name=sent_name, tool_call_id=sent_id)
    return part


@lru_cache(1024)
def _sent_name(name: str) -> str:
    """A tool's name as it is sent."""
    return _ODD_NAME.sub("_", name)[:LONGEST] or UNNAMED


def _sent_id(call_id: str) -> str:
    """A call's id as it is sent."""
    if 0 < len(call_id) <= LONGEST and not _ODD_ID.search(call_id):
        return call_id
    return substitute_id(call_id)


def substitute_id(call_id: str) -> str:
    """The id that is sent instead of one that a provider doesn't take; always the same for the same one."""
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

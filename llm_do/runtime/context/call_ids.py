"""`CallIds`: no two tool calls of a conversation have the same id.

A model may count its calls anew in every response, and providers refuse a conversation in which an id comes twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import BaseToolCallPart, ModelResponse, ToolCallPart

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["CallIds"]

UNNAMED = "call"
"""What the number follows where a model gives no id."""


class CallIds:
    """The ids of one conversation's tool calls."""

    __slots__ = ("_numbers", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] | None = None
        self._numbers: dict[str, int] = {}

    def distinct(self, response: ModelResponse, history: Sequence[ModelMessage]) -> ModelResponse:
        """Return the next response with an id for each tool call that no call before it has.

        Args:
            response: The response.
            history: The messages before it.
        """
        if self._taken is None:
            self._taken = {call_id for message in history for call_id in _ids(message)}
        ids = _ids(response)
        if "" not in ids and len(set(ids)) == len(ids) and self._taken.isdisjoint(ids):
            self._taken.update(ids)
            return response
        own = set(ids)
        parts = list(response.parts)
        for place, part in enumerate(parts):
            if not isinstance(part, ToolCallPart):
                continue
            if not part.tool_call_id or part.tool_call_id in self._taken:
                part = parts[place] = replace(part, tool_call_id=self._next(part.tool_call_id, own))
            self._taken.add(part.tool_call_id)
        self._taken |= own
        return replace(response, parts=parts)

    def _next(self, call_id: str, own: set[str]) -> str:
        """An id that is free, made of one that isn't, and that no other call of the response brings with it."""
        assert self._taken is not None
        base, number = call_id or UNNAMED, self._numbers.get(call_id, 1 if call_id else 0)
        while (free := f"{base}-{(number := number + 1)}") in self._taken or free in own:
            pass
        self._numbers[call_id] = number
        return free


def _ids(message: ModelMessage) -> list[str]:
    if not isinstance(message, ModelResponse):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, BaseToolCallPart)]

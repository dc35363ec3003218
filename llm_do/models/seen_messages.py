"""`SeenMessages`: how much of a history is what was seen before, so that only what is new in it costs anything."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["SeenMessages"]

_PARTS = attrgetter("parts")


class SeenMessages:
    """Messages that were seen, each as its list of parts and the length that it had.

    They are compared by functions of the interpreter alone, since this is all that grows with a conversation.
    """

    __slots__ = ("_lengths", "_parts")

    def __init__(self) -> None:
        self._parts: list[Sequence[object]] = []
        self._lengths: list[int] = []

    def __len__(self) -> int:
        return len(self._parts)

    def count(self, messages: Sequence[ModelMessage]) -> int:
        """How many messages at the beginning of a history are those seen, with the same parts."""
        shared = min(len(self._parts), len(messages))
        own = self._parts if shared == len(self._parts) else self._parts[:shared]
        if all(map(is_, own, map(_PARTS, messages))) and list(map(len, own)) == self._lengths[:shared]:
            return shared
        parts = [message.parts for message in messages[:shared]]
        seen = zip(self._parts, self._lengths, parts, strict=False)
        return next(number for number, (own, length, now) in enumerate(seen) if own is not now or length != len(now))

    def replace(self, start: int, messages: Sequence[ModelMessage]) -> None:
        """Remember the messages of a history from a place on, instead of those seen there."""
        parts = [message.parts for message in messages[start:]]
        self._parts[start:] = parts
        self._lengths[start:] = map(len, parts)

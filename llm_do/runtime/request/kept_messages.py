"""How a durable run keeps messages that hooks replace: each once, where a hook returned it first.

A hook that replaces messages returns the whole history at every request, most of it as at the request before. What is
kept of that is a slice of the list before, so that the store doesn't grow with the square of a run's requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["Message", "find_new", "join_messages", "split_messages"]

NEAR = 100
"""Messages that a hook may leave out between one request and the next, for the others to be found."""

Message: TypeAlias = dict[str, Any]
"""A message as JSON data."""


def split_messages(messages: Sequence[Message], before: Sequence[Message]) -> list[Message | list[int]]:
    """Return what is kept of a list of messages: new ones, and where slices of the list before begin and end.

    Example:
        >>> one, two, three = {"parts": [1]}, {"parts": [2]}, {"parts": [3]}
        >>> split_messages([two, three, {"parts": [4]}], [one, two, three])
        [[1, 3], {'parts': [4]}]
    """
    kept: list[Message | list[int]] = []
    expected = 0
    for message in messages:
        place = _place(message, before, expected)
        if place is None:
            kept.append(message)
            continue
        last = kept[-1] if kept else None
        if isinstance(last, list) and last[1] == place:
            last[1] = place + 1
        else:
            kept.append([place, place + 1])
        expected = place + 1
    return kept


def join_messages(kept: Sequence[Message | list[int]], before: Sequence[Message]) -> list[Message]:
    """Return the list of messages that `split_messages` split; one that was kept whole is as it was.

    Example:
        >>> join_messages([[1, 2], {"parts": [3]}], [{"parts": [1]}, {"parts": [2]}])
        [{'parts': [2]}, {'parts': [3]}]
    """
    messages: list[Message] = []
    for each in kept:
        messages += before[each[0] : each[1]] if isinstance(each, list) else [each]
    return messages


def find_new(messages: Sequence[ModelMessage], before: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages of a list that aren't in the list before, or not near where they were expected there."""
    # Most are the same objects: comparing each with all of a long history would take seconds.
    own = {id(message): place for place, message in enumerate(before)}
    new: list[ModelMessage] = []
    expected = 0
    for message in messages:
        place = own.get(id(message))
        if place is None:
            place = _place(message, before, expected)
        if place is None:
            new.append(message)
        else:
            expected = place + 1
    return new


def _place(message: object, before: Sequence[object], expected: int) -> int | None:
    """Where a message is in a list, from where it is expected on; None if it isn't near there."""
    near = range(expected, min(len(before), expected + NEAR))
    return next((place for place in near if before[place] == message), None)

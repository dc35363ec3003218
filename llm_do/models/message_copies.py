"""`MessageCopies`: copies of a call's messages, which its hooks get, so that they can't change what is sent or kept.

Each message is copied once. Whether a hook has changed one of its copies is looked at in a bounded number of them after
each call: a long run costs a hook that changes nothing no more at its thousandth request than at its tenth.
docs/design/long-histories.md explains it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from datetime import date, datetime
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llm_do.models.seen_messages import SeenMessages

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["MessageCopies", "copy_data", "is_unchanged", "take_snapshot"]

LAST = 10
"""Messages at the end that are looked at after each call of a hook."""

OLDER = 5
"""Messages before them that are looked at as well, other ones each time."""

SLICE = 200
"""Messages that are copied, or looked at, before the event loop gets its turn."""

ATOMS = frozenset({str, bytes, int, float, bool, type(None), date, datetime})
"""Types of immutable values."""

T = TypeVar("T")


class MessageCopies:
    """The copies that one hook gets of the messages of one call, request by request."""

    __slots__ = ("_copies", "_next", "_seen", "_snapshots", "_sources", "_unchecked")

    def __init__(self) -> None:
        self._seen = SeenMessages()
        self._sources: list[ModelMessage] = []
        self._copies: list[ModelMessage] = []
        # What a copy was when it was made: the original doesn't say once a tool has changed it in place.
        self._snapshots: list[ModelMessage] = []
        self._unchecked = 0
        self._next = 0

    async def copy(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return a list of copies of messages; only those that weren't there the last time are copied."""
        start = self._shared(messages)
        del self._sources[start:], self._copies[start:], self._snapshots[start:]
        self._unchecked = min(self._unchecked, start)
        for place in range(start, len(messages), SLICE):
            if place > start:
                await asyncio.sleep(0)
            new = messages[place : place + SLICE]
            copies = [copy_data(each) for each in new]
            self._copies += copies
            self._snapshots += map(take_snapshot, copies)
            self._sources += new
        self._seen.replace(start, messages)
        return list(self._copies)

    def originals(self, found: Iterable[ModelMessage]) -> list[ModelMessage]:
        """Return messages with each copy replaced by its original, and each other message by a copy."""
        known = dict(zip(map(id, self._copies), self._sources, strict=True))
        return [known[id(each)] if id(each) in known else copy_data(each) for each in found]

    async def find_changed(self) -> int | None:
        """Find a copy that isn't as it was made any more, and return its place; None if none is found.

        The first message, the last ones, all that are new since the last time, and some of the others are looked at, in
        turn: a change of any of them is found at the latest when its turn has come.
        """
        end = len(self._copies)
        recent = min(self._unchecked, max(end - LAST, 0))
        older = range(min(self._next, recent), min(self._next + OLDER, recent))
        self._unchecked, self._next = end, older.stop if older.stop < recent else 0
        for number, place in enumerate((*range(min(1, recent)), *older, *range(recent, end)), 1):
            if not is_unchanged(self._copies[place], self._snapshots[place]):
                return place
            if number % SLICE == 0:
                await asyncio.sleep(0)
        return None

    def _shared(self, messages: Sequence[ModelMessage]) -> int:
        """How many messages at the beginning are those that were copied."""
        count = self._seen.count(messages)
        if all(map(is_, self._sources[:count], messages)):
            return count
        return next(at for at in range(count) if self._sources[at] is not messages[at])


def copy_data(value: T) -> T:
    """Copy a message, or what may be in one, so that nothing in the copy can change it.

    What can't be copied, as a connection can't, is in the copy itself.

    Example:
        >>> data = {"tags": ["new"]}
        >>> copy = copy_data(data)
        >>> copy["tags"].append("old")
        >>> data
        {'tags': ['new']}
    """
    return _copied(value, _deep_copied)


def take_snapshot(value: T) -> T:
    """Copy what `is_unchanged` compares with a value later: objects that are equal to no other are in it themselves."""
    return _copied(value, _comparable)


def is_unchanged(value: object, snapshot: object) -> bool:
    """Whether a value is as it was when its snapshot was taken.

    Objects whose class doesn't define what makes two of them equal are unchanged as long as they are the same ones.

    Example:
        >>> data = {"tags": [object()]}
        >>> snapshot = take_snapshot(data)
        >>> is_unchanged(data, snapshot), is_unchanged({"tags": []}, snapshot)
        (True, False)
    """
    try:
        return _is_same(value, snapshot)
    except RecursionError:
        return True


def _copied(value: T, leaf: Callable[[Any], Any]) -> T:
    try:
        return _copied_data(value, leaf)
    except RecursionError:  # data that contains itself, which only `deepcopy` follows
        return leaf(value)


def _copied_data(value: Any, leaf: Callable[[Any], Any]) -> Any:
    kind = cast("Any", type(value))
    if kind in ATOMS:
        return value
    if kind is list:
        return [_copied_data(each, leaf) for each in value]
    if kind is tuple:
        return tuple([_copied_data(each, leaf) for each in value])
    if kind is dict:
        return {key: _copied_data(each, leaf) for key, each in value.items()}
    if hasattr(kind, "__dataclass_fields__") and hasattr(value, "__dict__") and not getattr(kind, "__slots__", ()):
        copy: object = kind.__new__(kind)
        attributes, before = cast("dict[str, object]", vars(copy)), cast("dict[str, object]", vars(value))
        for name, each in before.items():
            attributes[name] = each if type(each) in ATOMS else _copied_data(each, leaf)
        return copy
    return leaf(value)


def _deep_copied(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 (whatever a class raises that can't be copied)
        return value


def _comparable(value: Any) -> Any:
    return value if type(value).__eq__ is object.__eq__ else _deep_copied(value)


def _is_same(value: Any, snapshot: Any) -> bool:
    if value is snapshot:
        return True
    kind = cast("Any", type(snapshot))
    if type(value) is not kind:
        return False
    if kind is list or kind is tuple:
        return len(value) == len(snapshot) and all(map(_is_same, value, snapshot))
    if kind is dict:
        return value.keys() == snapshot.keys() and all(_is_same(value[key], snapshot[key]) for key in snapshot)
    if hasattr(kind, "__dataclass_fields__"):
        for name in kind.__dataclass_fields__:
            own, other = getattr(value, name, None), getattr(snapshot, name, None)
            if own is not other and not _is_same(own, other):
                return False
        return True
    try:
        return bool(value == snapshot)
    except Exception:  # noqa: BLE001 (arrays raise one, since they are neither equal nor not)
        return True

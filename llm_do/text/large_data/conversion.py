"""Large values as JSON, written in parts, so that a thread that writes one doesn't hold up the others.

A call into native code keeps the interpreter's lock until it returns: converting a whole list of a million rows stops
every other thread, and with them the event loop, for seconds.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from llm_do.text.json_data import to_json_data
from llm_do.text.large_data.record_fields import field_values, is_model, model_data, plain_fields
from llm_do.text.surrogates import replace_surrogates

__all__ = ["is_large", "json_parts", "large_json_data", "text_parts", "weigh"]

_NODES = 5_000
"""Values that are converted in one go; that takes a few milliseconds."""

_CHARACTERS = 1_000_000

_CHARACTERS_OF_A_NODE = _CHARACTERS // _NODES
"""A text this long takes as long to convert as one more value."""

_SCALARS = frozenset({type(None), bool, int, float})


def is_large(value: object) -> bool:
    """Whether a value has so many parts, or so much text, that converting it takes more than a moment.

    Example:
        >>> is_large([{"n": 1}] * 100), is_large([{"n": 1}] * 100_000), is_large("x" * 10_000_000)
        (False, True, True)
    """
    return weigh(value, _NODES) >= _NODES


def json_parts(value: object, *, strict: bool = False) -> Iterator[str]:
    """Return the JSON of `to_json_data(value)` in parts, each made in a moment.

    Example:
        >>> "".join(json_parts({"a": [1, 2.5, None], "b": "text"}))
        '{"a": [1, 2.5, null], "b": "text"}'
    """
    return _Parts(strict).texts(value)


def large_json_data(value: object, *, strict: bool = False) -> Any:
    """Return `to_json_data(value)`, converted in parts, so that no other thread waits for all of them.

    Example:
        >>> large_json_data({"a": (1, 2.5, None), "b": "text"})
        {'a': [1, 2.5, None], 'b': 'text'}
    """
    return _Parts(strict).data(value)


def text_parts(text: str) -> Iterator[str]:
    """Return a text in parts without lone surrogates; two that make a character together stay together."""
    start = 0
    while start < len(text):
        end = start + _CHARACTERS
        while end < len(text) and "\ud800" <= text[end - 1] <= "\udbff":
            end += 1
        yield replace_surrogates(text[start:end])
        start = end


def _base64_parts(data: bytes | bytearray) -> Iterator[str]:
    """Return bytes as base64 in parts that make one text: each but the last is of a multiple of three bytes."""
    step = _CHARACTERS // 3 * 3
    for start in range(0, len(data), step):
        yield urlsafe_b64encode(data[start : start + step]).decode()


class _Parts:
    """One conversion of a value in parts.

    Args:
        strict: As `to_json_data` takes it.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self._within: set[int] = set()

    def is_large(self, value: object) -> bool:
        """Whether a value is to be converted in parts."""
        return weigh(value, _NODES) >= _NODES

    def batches(self, values: Any) -> Iterator[list[Any]]:
        """Return items, or the members of a dict, in groups that are converted in one go."""
        return _batches(values)

    def data(self, value: object) -> Any:
        """The JSON data of a value."""
        if not self.is_large(value):
            return to_json_data(value, strict=self.strict)
        if isinstance(value, str):
            return "".join(text_parts(value))
        if isinstance(value, bytes | bytearray):
            return "".join(_base64_parts(value))
        with self._inside(value):
            if is_model(value):
                return model_data(value, self)
            opened: Any = _opened(value)
            if isinstance(opened, dict):
                return self._members_data(cast("dict[Any, Any]", opened))
            return to_json_data(value, strict=self.strict) if opened is None else self._items_data(opened)

    def _items_data(self, items: Collection[Any]) -> list[Any]:
        found: list[Any] = []
        for batch in _batches(items):
            found.extend([self.data(batch[0])] if len(batch) == 1 else to_json_data(batch, strict=self.strict))
        return found

    def _members_data(self, members: dict[Any, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for batch in _batches(members.items()):
            if len(batch) == 1:
                found[_name(batch[0][0])] = self.data(batch[0][1])
            else:
                found.update(to_json_data(dict(batch), strict=self.strict))
        return found

    def texts(self, value: object) -> Iterator[str]:
        """The JSON text of a value, in parts."""
        if not self.is_large(value):
            yield self._dump(value)
        elif isinstance(value, str):
            yield '"'
            for part in text_parts(value):
                yield self._dump(part)[1:-1]
            yield '"'
        elif isinstance(value, bytes | bytearray):
            yield '"'
            yield from _base64_parts(value)
            yield '"'
        else:
            with self._inside(value):
                if is_model(value):
                    value = model_data(value, self)
                opened: Any = _opened(value)
                if isinstance(opened, dict):
                    yield from self._members_texts(cast("dict[Any, Any]", opened))
                elif opened is None:
                    yield self._dump(value)
                else:
                    yield from self._items_texts(opened)

    def _items_texts(self, items: Collection[Any]) -> Iterator[str]:
        yield "["
        first = True
        for batch in _batches(items):
            yield "" if first else ", "
            first = False
            if len(batch) == 1:
                yield from self.texts(batch[0])
            else:
                yield self._dump(batch)[1:-1]
        yield "]"

    def _members_texts(self, members: dict[Any, Any]) -> Iterator[str]:
        yield "{"
        first = True
        for batch in _batches(members.items()):
            yield "" if first else ", "
            first = False
            if len(batch) == 1:
                yield f"{json.dumps(_name(batch[0][0]), ensure_ascii=False)}: "
                yield from self.texts(batch[0][1])
            else:
                yield self._dump(dict(batch))[1:-1]
        yield "}"

    def _dump(self, value: object) -> str:
        return json.dumps(to_json_data(value, strict=self.strict), ensure_ascii=False)

    @contextmanager
    def _inside(self, value: object) -> Generator[None]:
        """Refuse a value that contains itself, as a conversion in one go does."""
        if id(value) in self._within:
            raise ValueError(f"a {type(value).__name__} contains itself")
        self._within.add(id(value))
        try:
            yield
        finally:
            self._within.discard(id(value))


def _opened(value: object) -> dict[Any, Any] | Collection[Any] | None:
    """A container, or a dataclass as its fields; None for what has no parts."""
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        return cast("Collection[Any]", value)
    return plain_fields(value) if hasattr(type(value), "__dataclass_fields__") else None


def _name(key: object) -> str:
    (name,) = to_json_data({key: None})
    return name


def _batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Return values in groups that are converted in one go; one too large for that is alone."""
    batch: list[Any] = []
    weight = 0
    for item in values:
        own = weigh(item, _NODES)
        if batch and weight + own >= _NODES:
            yield batch
            batch, weight = [], 0
        batch.append(item)
        weight += own
    if batch:
        yield batch


def weigh(value: object, most: int) -> int:
    """Return about how many parts a value has, long texts counting for many, and no further than `most`.

    Example:
        >>> weigh({"a": [1, 2], "b": None}, 100), weigh([0] * 1000, 100), weigh("x" * 2000, 100)
        (5, 100, 11)
    """
    if isinstance(value, str | bytes | bytearray):  # most are
        return min(1 + len(value) // _CHARACTERS_OF_A_NODE, most)
    weight = 1
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        kind = item.__class__
        if kind is dict:
            parts: Collection[Any] | None = item.values()
        elif kind is list:
            parts = item
        elif isinstance(item, str | bytes | bytearray):
            weight += len(item) // _CHARACTERS_OF_A_NODE
            parts = None
        else:
            parts = field_values(item)
        if parts is not None:
            weight += len(parts)
            if weight < most:
                for part in parts:
                    kind = part.__class__
                    if kind is str:  # most are
                        weight += len(part) // _CHARACTERS_OF_A_NODE
                    elif kind not in _SCALARS:
                        waiting.append(part)
        if weight >= most:
            return most
    return weight

"""Large values as JSON, written in parts, so that a thread that writes one doesn't hold up the others.

A call into native code keeps the interpreter's lock until it returns: converting a whole list of a million rows stops
every other thread, and with them the event loop, for seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, cast

from llm_do.text.json_data import to_json_data
from llm_do.text.surrogates import replace_surrogates

__all__ = ["is_large", "json_parts", "text_parts", "weigh"]

_NODES = 5_000
"""Values that are converted in one go; that takes a few milliseconds."""

_CHARACTERS = 1_000_000


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
    if weigh(value, _NODES) < _NODES:
        yield _dump(value, strict)
    elif isinstance(value, str):
        yield '"'
        for part in text_parts(value):
            yield _dump(part, strict)[1:-1]
        yield '"'
    elif isinstance(value, dict):
        yield from _members(cast("dict[Any, Any]", value), strict)
    elif isinstance(value, list | tuple):
        yield from _items(cast("list[Any]", value), strict)
    else:
        yield _dump(value, strict)


def text_parts(text: str) -> Iterator[str]:
    """Return a text in parts without lone surrogates; two that make a character together stay together."""
    start = 0
    while start < len(text):
        end = start + _CHARACTERS
        while end < len(text) and "\ud800" <= text[end - 1] <= "\udbff":
            end += 1
        yield replace_surrogates(text[start:end])
        start = end


def _dump(value: object, strict: bool) -> str:
    return json.dumps(to_json_data(value, strict=strict), ensure_ascii=False)


def _items(items: list[Any] | tuple[Any, ...], strict: bool) -> Iterator[str]:
    yield "["
    first = True
    for batch in _batches(items, _weigh_item):
        yield "" if first else ", "
        first = False
        if len(batch) == 1:
            yield from json_parts(batch[0], strict=strict)
        else:
            yield _dump(batch, strict)[1:-1]
    yield "]"


def _members(members: dict[Any, Any], strict: bool) -> Iterator[str]:
    yield "{"
    first = True
    for batch in _batches(members.items(), _weigh_member):
        yield "" if first else ", "
        first = False
        (key, item), *others = batch
        if others:
            yield _dump(dict(batch), strict)[1:-1]
        else:
            yield f"{_dump({key: None}, strict)[1:-5]}"
            yield from json_parts(item, strict=strict)
    yield "}"


def _weigh_item(item: object) -> int:
    return weigh(item, _NODES)


def _weigh_member(member: tuple[object, object]) -> int:
    return weigh(member[1], _NODES) + 1


def _batches(items: Iterable[Any], weigh: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Return the items in groups that are converted in one go; an item too large for that is alone."""
    batch: list[Any] = []
    weight = 0
    for item in items:
        own = weigh(item)
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
    weight = 1
    if isinstance(value, str | bytes):
        return weight + len(value) // (_CHARACTERS // _NODES)
    if isinstance(value, dict):
        parts = cast("dict[Any, Any]", value).values()
    elif isinstance(value, list | tuple):
        parts = cast("list[Any]", value)
    else:
        return weight
    if len(parts) >= most:
        return most
    for part in islice(parts, most):
        weight += 1 if part is None or isinstance(part, int | float) else weigh(part, most - weight)
        if weight >= most:
            break
    return weight

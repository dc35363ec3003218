"""Lists and dicts that don't change: what a context holds and hands out. Everything else is kept as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, TypeAlias, cast

import immutables

__all__ = ["FrozenDict", "FrozenList", "Value", "freeze", "thaw"]

Value: TypeAlias = Any
"""Anything a context may hold: JSON-like data, or objects of the project's own."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("values of a context don't change: make a list or a dict of it, change that and set it")


class FrozenList(list[Value]):
    """A list that refuses to change; a list in every other respect, for JSON too."""

    __slots__ = ()
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # pyright: ignore[reportAssignmentType]
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> list[Value]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Value]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


class FrozenDict(dict[str, Value]):
    """A dict that refuses to change; a dict in every other respect, for JSON too."""

    __slots__ = ()
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]
    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> dict[str, Value]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Value]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


def freeze(value: Value) -> Value:
    """A value as a context keeps it: lists, dicts and sets copied into ones that don't change, all the way down.

    Args:
        value: Any value; what is frozen already is not copied again.

    Returns:
        The frozen value.

    Raises:
        RecursionError: It contains itself.

    Example:
        >>> kept = freeze({"ids": [1, 2]})
        >>> kept, isinstance(kept["ids"], list)
        ({'ids': [1, 2]}, True)
    """
    if isinstance(value, str | int | float | FrozenList | FrozenDict) or value is None:
        return value
    if isinstance(value, dict | immutables.Map):
        return FrozenDict(_frozen_items(cast("Mapping[str, Value]", value)))
    if isinstance(value, list):
        return FrozenList(freeze(item) for item in cast("list[Value]", value))
    if type(value) is tuple:
        return tuple(freeze(item) for item in cast("tuple[Value, ...]", value))
    if isinstance(value, set):
        return frozenset(cast("AbstractSet[Value]", value))
    return bytes(value) if isinstance(value, bytearray) else value


def _frozen_items(value: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for key, item in value.items():
        yield key, freeze(item)


def thaw(value: Value) -> Value:
    """Ordinary lists and dicts of a frozen value, which the caller may change."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast("Mapping[str, Value]", value).items()}
    if isinstance(value, list):
        return [thaw(item) for item in cast("list[Value]", value)]
    if type(value) is tuple:
        return tuple(thaw(item) for item in cast("tuple[Value, ...]", value))
    return value

"""Immutable lists and dicts, in which a context keeps its values. Other values are kept as they are."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Set as AbstractSet
from typing import Any, NoReturn, TypeAlias, cast

import immutables

__all__ = ["MOST_LEVELS", "FrozenDict", "FrozenList", "Value", "freeze", "thaw"]

MOST_LEVELS = 200
"""The deepest nesting of lists, dicts and tuples that everything that walks through a value, JSON too, can take."""

Value: TypeAlias = Any
"""Anything a context may hold: JSON-like data, or objects of the project's own classes."""

_PLAIN = (str, int, float, type(None))


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("values of a context can't be changed in place: set a changed copy")


class FrozenList(list[Value]):
    """A list that can't be changed; a list in every other respect, for JSON too."""

    __slots__ = ("levels",)
    levels: int
    """How deep lists, dicts and tuples nest in it, itself included."""

    append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # pyright: ignore[reportAssignmentType]
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> list[Value]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Value]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


class FrozenDict(dict[str, Value]):
    """A dict that can't be changed; a dict in every other respect, for JSON too."""

    __slots__ = ("levels",)
    levels: int
    """How deep lists, dicts and tuples nest in it, itself included."""

    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]
    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> dict[str, Value]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Value]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


def freeze(value: Value) -> Value:
    """A value as a context keeps it: lists, dicts and sets copied into immutable ones, all the way down.

    Example:
        >>> kept = freeze({"ids": [1, 2]})
        >>> kept, isinstance(kept["ids"], list)
        ({'ids': [1, 2]}, True)
    """
    return _freeze(value)[0]


def _freeze(value: Value) -> tuple[Value, int]:
    """A frozen value, and how deep lists, dicts and tuples nest in it.

    A `FrozenList` or `FrozenDict` that has no `levels` was made by its class, such as with `type(value)(...)`: its
    items may be mutable, so it is frozen like any other.
    """
    if isinstance(value, _PLAIN):
        return value, 0
    if isinstance(value, (FrozenList, FrozenDict)) and hasattr(value, "levels"):
        return value, value.levels
    if isinstance(value, (dict, immutables.Map)):
        mapping = cast("Mapping[str, Value]", value)
        values, levels = _freeze_items(mapping.values())
        frozen_dict = FrozenDict(zip(mapping, values, strict=True))
        frozen_dict.levels = levels
        return frozen_dict, levels
    if isinstance(value, list):
        items, levels = _freeze_items(cast("list[Value]", value))
        frozen_list = FrozenList(items)
        frozen_list.levels = levels
        return frozen_list, levels
    if isinstance(value, tuple):
        items, levels = _freeze_items(cast("tuple[Value, ...]", value))
        return _tuple(cast("tuple[Value, ...]", value), items), levels
    if isinstance(value, set):
        return frozenset(cast("AbstractSet[Value]", value)), 0
    return bytes(value) if isinstance(value, bytearray) else value, 0


def _freeze_items(items: Iterable[Value]) -> tuple[list[Value], int]:
    """The frozen items of a list, a dict or a tuple, and how deep it nests."""
    frozen: list[Value] = []
    deepest = 0
    for item in items:
        if not isinstance(item, _PLAIN):
            item, levels = _freeze(item)
            deepest = max(deepest, levels)
        frozen.append(item)
    if deepest >= MOST_LEVELS:
        raise RecursionError(f"lists and dicts nest more than {MOST_LEVELS} levels deep")
    return frozen, deepest + 1


def _tuple(value: tuple[Value, ...], items: list[Value]) -> tuple[Value, ...]:
    """A tuple of the same class with other items; itself if they are the same, or if its class can't make one."""
    if all(map(operator.is_, value, items)):
        return value
    if type(value) is tuple:
        return tuple(items)
    make: Callable[[list[Value]], tuple[Value, ...]] | None = getattr(value, "_make", None)
    return make(items) if make is not None else value


def thaw(value: Value) -> Value:
    """A frozen value as ordinary lists and dicts, which the caller may change."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast("Mapping[str, Value]", value).items()}
    if isinstance(value, list):
        return [thaw(item) for item in cast("list[Value]", value)]
    if isinstance(value, tuple):
        items = cast("tuple[Value, ...]", value)
        return _tuple(items, [thaw(item) for item in items])
    return value

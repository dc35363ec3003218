"""`frozen`: the decorator of our values, frozen dataclasses with slots that are quick to make.

`dataclass` writes and compiles each method of each class anew, which for some hundred and fifty classes is a twelfth of
a short run. Comparing, hashing and showing are the same for all of them, so here all of them share one function each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

__all__ = ["frozen"]

T = TypeVar("T")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


def frozen(kind: type[T] | None = None, *, kw_only: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a value: the same as `@dataclass(frozen=True, slots=True)`.

    Args:
        kind: The class.
        kw_only: Its fields are given by name only.

    Returns:
        The class; or the decorator, when only options are given.

    Example:
        >>> @frozen
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1)})
        (Point(x=1, y=0), True, 1)
    """

    def made(kind: type[T]) -> type[T]:
        own = vars(kind)
        shared: dict[str, Callable[..., object]] = {"__repr__": _show, "__eq__": _equal}
        if own.get("__hash__") is None:  # not there, or there because of an `__eq__`
            shared["__hash__"] = _hash
        for name, method in shared.items():
            if own.get(name) is None:
                setattr(kind, name, method)
        return dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=kw_only)(kind)

    return made if kind is None else made(kind)


@cache
def _key(kind: type[Any]) -> Callable[[object], tuple[object, ...]]:
    names = [each.name for each in fields(kind) if each.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


@cache
def _shown(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.repr)


def _equal(self: object, other: object) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = _key(self.__class__)
    return key(self) == key(other)


def _hash(self: object) -> int:
    return hash(_key(self.__class__)(self))


@recursive_repr()
def _show(self: object) -> str:
    given = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shown(self.__class__))
    return f"{self.__class__.__qualname__}({given})"

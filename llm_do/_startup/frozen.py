"""`frozen`: the decorator for values, which are frozen dataclasses with slots that are cheap to define.

`dataclass` writes and compiles each method of each class anew. Here comparing, hashing, `repr` and refusing assignment
are one function each for all classes, and the only method that depends on its class, `__init__`, is compiled when the
first value is made: a run makes values of a third of the classes that it imports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache
from inspect import Signature, signature
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

__all__ = ["frozen"]

T = TypeVar("T")

_SPECIAL = re.compile("ClassVar|InitVar|KW_ONLY")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


def frozen(kind: type[T] | None = None, *, kw_only: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a value: what `@dataclass(frozen=True, slots=True)` does, but for `InitVar`.

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
        for name, method in _SHARED.items():
            if own.get(name) is None:  # not there; or `__hash__`, taken away because of an `__eq__`
                setattr(kind, name, method)
        # `dataclass` would describe a class by its signature, which is costly to find and not known yet.
        kind.__doc__ = kind.__doc__ or kind.__name__
        annotations: dict[str, Any] = own.get("__annotations__", {})
        texts = _plain_annotations(annotations)
        annotations.update(dict.fromkeys(texts, object))
        value: Any = dataclass(init=False, slots=True, eq=False, repr=False, kw_only=kw_only)(kind)
        annotations.update(texts)
        for each in fields(value):
            each.type = texts.get(each.name, each.type)
        if "__init__" not in own:
            _init_later(value)
        return value

    return made if kind is None else made(kind)


def _plain_annotations(annotations: Mapping[str, Any]) -> dict[str, str]:
    """The annotations of a class if they are text that only declares fields.

    `dataclass` matches each that is text with three regular expressions, to find the few that mean something else,
    which takes a third of its time.
    """
    if not all(type(each) is str for each in annotations.values()):
        return {}
    return {} if _SPECIAL.search(" ".join(annotations.values())) else dict(annotations)


def _init_later(kind: type[Any]) -> None:
    def first(self: object, *args: object, **kwargs: object) -> None:
        kind.__init__ = _init_of(kind)
        kind.__init__(self, *args, **kwargs)

    kind.__init__ = first
    kind.__signature__ = _Signature(kind)


def _init_of(kind: type[Any]) -> Callable[..., None]:
    """Compile a class's `__init__`; setters and defaults reach it as variables, whatever they are."""
    known: dict[str, object] = {"FACTORY": _FACTORY}
    parameters: dict[bool, list[str]] = {False: ["self"], True: []}
    body: list[str] = []
    for each in fields(kind):
        name, default, factory = each.name, f"default_{each.name}", f"factory_{each.name}"
        known |= {f"set_{name}": getattr(kind, name).__set__, default: each.default, factory: each.default_factory}
        if each.default_factory is not MISSING:
            default = "FACTORY"
        if each.init:
            optional = each.default is not MISSING or each.default_factory is not MISSING
            parameters[bool(each.kw_only)].append(f"{name}={default}" if optional else name)
        value = name if each.init else default
        if default == "FACTORY":
            value = f"{factory}() if {name} is FACTORY else {name}" if each.init else f"{factory}()"
        body.append(f"set_{name}(self, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    by_name = ["*", *parameters[True]] if parameters[True] else []
    text = f"def __init__({', '.join(parameters[False] + by_name)}):\n " + "\n ".join(body or ["pass"])
    exec(text, known, known)  # noqa: S102 - the command line binds this name, too (`compiled_texts`)
    init: Any = known["__init__"]
    init.__module__, init.__qualname__ = kind.__module__, f"{kind.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in fields(kind) if each.init} | {"return": None}
    return init


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Signature:
    """The signature of a class, for whoever asks before its `__init__` is compiled."""

    def __init__(self, kind: type[Any]) -> None:
        self._kind = kind

    def __get__(self, _: object, owner: type[Any]) -> Signature:
        if owner.__init__ is not self._kind.__init__:
            raise AttributeError("__signature__")
        found = signature(_init_of(self._kind))
        return found.replace(parameters=list(found.parameters.values())[1:])


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
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shown(self.__class__))
    return f"{self.__class__.__qualname__}({shown})"


def _is_fixed(kind: type[Any], name: str) -> bool:
    # A class that only derives from a value may have attributes of its own.
    return "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__


def _set(self: object, name: str, value: object) -> None:
    if _is_fixed(self.__class__, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: object, name: str) -> None:
    if _is_fixed(self.__class__, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_SHARED: dict[str, Callable[..., object]] = {
    "__repr__": _show,
    "__eq__": _equal,
    "__hash__": _hash,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}

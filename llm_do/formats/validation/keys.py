"""Which keys the models have and require at a path of a tree, for suggestions in diagnostics."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

from llm_do.formats.syntax.source import KeyPath, Node

__all__ = ["is_required", "known_keys"]


def known_keys(model: type[BaseModel], root: Node, loc: KeyPath) -> list[str]:
    """List the keys that a mapping may have."""
    return list(dict.fromkeys(key for kind in _kinds(model, root, loc) for key in _fields(kind)))


def is_required(model: type[BaseModel], root: Node, loc: KeyPath) -> bool:
    """Whether a mapping has to have a key."""
    return any(loc[-1] in _required(kind) for kind in _kinds(model, root, loc[:-1]))


def _kinds(model: type[BaseModel], root: Node, loc: KeyPath) -> list[object]:
    """The types that a value at a path may have."""
    here: list[object] = list(_choices(model, root))
    for depth, part in enumerate(loc):
        node = root.at(loc[: depth + 1])
        here = [choice for kind in here for below in _below(kind, part) for choice in _choices(below, node)]
    return here


def _choices(kind: Any, node: Node | None) -> Iterator[object]:
    """The models and containers that a type allows for a node."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _choices(get_args(kind)[0], node)
    elif origin in (Union, types.UnionType):
        for choice in get_args(kind):
            yield from _choices(choice, node)
    elif _fits(kind, node):
        yield kind


def _fits(kind: object, node: Node | None) -> bool:
    """Whether a model is the one that the node's `type`, `mode` or `tool_type` chooses."""
    if node is None or not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return True
    for name, info in kind.model_fields.items():
        value = node.entries.get(name)
        if get_origin(info.annotation) is Literal and info.is_required() and value is not None:
            return value.scalar in get_args(info.annotation)
    return True


def _below(kind: Any, part: str | int) -> Iterator[object]:
    """The types of the value under a key or an index."""
    arguments = get_args(kind)
    if get_origin(kind) is list and isinstance(part, int):
        yield arguments[0]
    elif get_origin(kind) is dict:
        yield arguments[1]
    elif isinstance(part, str) and part in (fields := _fields(kind)):
        yield fields[part]


def _fields(kind: Any) -> dict[str, object]:
    if is_typeddict(kind):
        return dict(get_type_hints(kind, include_extras=True))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {info.alias or name: info.annotation for name, info in kind.model_fields.items()}
    return {}


def _required(kind: Any) -> Iterable[str | int]:
    if is_typeddict(kind):
        return kind.__required_keys__
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [info.alias or name for name, info in kind.model_fields.items() if info.is_required()]
    return ()

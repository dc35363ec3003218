"""What dynamic types read: a context, filters, and the JSON Schemas that values of a context stand for.

The types themselves are `llm_do.machines.dynamic_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.machines.frozen_values import Value, thaw

if TYPE_CHECKING:
    from llm_do.machines.context import Context

__all__ = [
    "BUILTIN_FILTERS",
    "Filter",
    "Schema",
    "Sources",
    "UnresolvedError",
    "choices",
    "constraints",
    "distinct",
    "values_of",
]

Schema: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[list[Value]], Iterable[Value]]
"""Takes the values of a list and returns those to choose from."""


class UnresolvedError(Exception):
    """A dynamic type has no schema in this context; the message is the reason, to follow "it"."""


@frozen
class Sources:
    """Where dynamic types find their values.

    Args:
        context: The context.
        filters: Filters by name, the built-in ones included.
    """

    context: Context
    filters: Mapping[str, Filter]

    def value(self, key: str) -> Value:
        """The value of a key; `UnresolvedError` if there is none."""
        if not self.context.has(key):
            raise UnresolvedError(f"needs {key!r} in the context")
        return self.context.get(key)

    def schema(self, key: str) -> Schema:
        """What the type of a key's value implies: one of a list, a dict's constraints, or exactly that value."""
        value = self.value(key)
        if isinstance(value, Mapping):
            return constraints(value)
        if isinstance(value, list | tuple | frozenset):
            return {"enum": choices(key, value)}
        return {"const": value}

    def text(self, key: str, what: str) -> str:
        """The string that is a key's value; `what` describes it if it isn't one."""
        value = self.value(key)
        if not isinstance(value, str):
            raise UnresolvedError(f"needs {what} in {key!r}")
        return value


def constraints(value: Value) -> Schema:
    """A dict as the JSON Schema that it is."""
    return cast("Schema", thaw(value))


def values_of(key: str, value: Value) -> list[Value]:
    """The values of a list; `UnresolvedError` if the key holds something else."""
    if not isinstance(value, list | tuple | frozenset):
        raise UnresolvedError(f"needs a list in {key!r}")
    items = list(cast("Iterable[Value]", value))
    return sorted(items, key=repr) if isinstance(value, frozenset) else items


def choices(key: str, value: Value) -> list[Value]:
    """The values to choose from; a dict stands for its `id`, else its `name`."""
    found = distinct([thaw(_stands_for(item)) for item in values_of(key, value)])
    if not found:
        raise UnresolvedError(f"needs a value in {key!r}, which is empty")
    return found


def _stands_for(item: Value) -> Value:
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, Value]", item)
        return fields.get("id", fields.get("name", item))
    return item


def distinct(values: list[Value]) -> list[Value]:
    """Each value once, in order; 1 and True are different."""
    seen: set[tuple[str, str]] = set()
    kept: list[Value] = []
    for value in values:
        identity = (type(value).__name__, repr(value))
        if identity not in seen:
            seen.add(identity)
            kept.append(value)
    return kept


def _active_only(items: list[Value]) -> list[Value]:
    return [item for item in items if item["active"]]


def _sort_asc(items: list[Value]) -> list[Value]:
    return sorted(items, key=_stands_for)


def _sort_desc(items: list[Value]) -> list[Value]:
    return sorted(items, key=_stands_for, reverse=True)


BUILTIN_FILTERS: Mapping[str, Filter] = {
    "active_only": _active_only,
    "sort_asc": _sort_asc,
    "sort_desc": _sort_desc,
}
"""Filters that every toolkit has."""

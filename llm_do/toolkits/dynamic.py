"""The dynamic types: parameter types whose JSON Schema comes from the context as it is at the moment.

`DynamicStr["projects"]` is short for `Annotated[str, DynamicStr("projects")]`, which type checkers accept. In a tool's
static schema each leaves a mark, which `llm_do.toolkits.schemas` finds and fills.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, cast

from pydantic_core import PydanticCustomError, core_schema, to_jsonable_python

from llm_do._frozen import frozen
from llm_do.errors import ToolkitError
from llm_do.runtime.gates import DYNAMIC_MARK
from llm_do.toolkits.frozen import Value, thaw

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

    from llm_do.toolkits.context import Context

__all__ = [
    "BUILTIN_FILTERS",
    "CHECKS",
    "MARK",
    "Dynamic",
    "DynamicArray",
    "DynamicConditional",
    "DynamicConst",
    "DynamicConstraints",
    "DynamicFiltered",
    "DynamicFloat",
    "DynamicFormat",
    "DynamicInt",
    "DynamicNested",
    "DynamicPattern",
    "DynamicStr",
    "DynamicUnion",
    "Filter",
    "Sources",
    "UnresolvedError",
    "unmarked",
]

MARK = DYNAMIC_MARK
"""The key of a JSON Schema under which a dynamic type describes itself: its name, then what it was given."""

CHECKS: ContextVar[Mapping[Dynamic, Validator] | None] = ContextVar("llm_do_dynamic_checks", default=None)
"""What dynamic types demand while arguments are validated once more, when a call's turn has come."""

Schema: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[list[Value]], Iterable[Value]]
"""Takes the values of a list and gives those to choose from."""


class UnresolvedError(Exception):
    """A dynamic type has no schema in this context; the text says why, after "it"."""


@frozen
class Sources:
    """Where dynamic types find what they stand for.

    Args:
        context: The context.
        filters: Filters by name, the built-in ones included.
    """

    context: Context
    filters: Mapping[str, Filter]

    def value(self, key: str) -> Value:
        """The value of a key; `UnresolvedError` where there is none."""
        if not self.context.has(key):
            raise UnresolvedError(f"needs {key!r} in the context")
        return self.context.get(key)


class Dynamic(ABC):
    """A parameter's type as the context says.

    Args:
        key: Whose value it is made of; dotted paths reach into values.
    """

    base: ClassVar[Any] = Any
    """What the value is for Python, whatever the context says."""

    def __init__(self, key: str, *more: str) -> None:
        self.given: tuple[str, ...] = (key, *more)
        if len(self.given) != 1:
            raise ToolkitError(f"{type(self).__name__} takes one key of the context, not {len(self.given)}")

    def __class_getitem__(cls, given: str | tuple[str, ...]) -> Any:
        made = cls(*given) if isinstance(given, tuple) else cls(given)
        return Annotated[cls.base, made]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate as the static type does, then by the context whose checks are set, if any are.

        Pydantic knows where the value is, whatever it is called and however deep; and it leaves defaults alone, which
        are the author's choice and not the model's.
        """
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: Value) -> Value:
        checks = CHECKS.get()
        if checks is not None and self in checks:
            fault = next(iter(checks[self].iter_errors(to_jsonable_python(value, fallback=repr))), None)
            if fault is not None:
                raise PydanticCustomError("dynamic", "{fault}", {"fault": fault.message})
        return value

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Leave a mark where the schema is filled in later."""
        return {**handler(schema), MARK: [type(self).__name__, *self.given]}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and cast("Dynamic", other).given == self.given

    def __hash__(self) -> int:
        return hash((type(self), self.given))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.given))})"

    @property
    def filter_names(self) -> tuple[str, ...]:
        """The filters it applies."""
        return ()

    @abstractmethod
    def schema(self, sources: Sources) -> Schema:
        """What the value must be, as the context is.

        Args:
            sources: The context and the filters.

        Returns:
            A JSON Schema, to be laid over the static one.

        Raises:
            UnresolvedError: The context lacks what it takes.
        """


class _Typed(Dynamic):
    """From a list: one of its values. From a dict: its constraints."""

    kinds: ClassVar[tuple[type, ...]] = (str,)
    noun: ClassVar[str] = "strings"

    def schema(self, sources: Sources) -> Schema:
        """An enum, or constraints."""
        (key,) = self.given
        value = sources.value(key)
        if isinstance(value, Mapping):
            return _constraints(value)
        choices = _choices(key, value)
        if any(not isinstance(item, self.kinds) or isinstance(item, bool) for item in choices):
            raise UnresolvedError(f"needs {self.noun} in {key!r}, which holds something else")
        return {"enum": choices}


class DynamicStr(_Typed):
    """A string: one of a list, or one that keeps a dict's constraints.

    Example:
        >>> from llm_do.toolkits.context import Context
        >>> sources = Sources(Context(initial_data={"projects": ["alpha", "beta"]}), BUILTIN_FILTERS)
        >>> DynamicStr("projects").schema(sources)
        {'enum': ['alpha', 'beta']}
    """

    base = str


class DynamicInt(_Typed):
    """An integer: one of a list, or one that keeps a dict's constraints."""

    base = int
    kinds = (int,)
    noun = "integers"


class DynamicFloat(_Typed):
    """A number: one of a list, or one that keeps a dict's constraints."""

    base = float
    kinds = (int, float)
    noun = "numbers"


class DynamicArray(Dynamic):
    """A list whose items are of a list's values, or keep a dict's constraints."""

    base = list[Any]

    def schema(self, sources: Sources) -> Schema:
        """A schema for the items."""
        (key,) = self.given
        value = sources.value(key)
        return {"items": _constraints(value) if isinstance(value, Mapping) else {"enum": _choices(key, value)}}


class DynamicFormat(Dynamic):
    """A string in the format that the context names, such as `email` or `date`."""

    base = str

    def schema(self, sources: Sources) -> Schema:
        """The format."""
        return {"format": _text(sources, self.given[0], "a format's name")}


class DynamicPattern(Dynamic):
    """A string that the context's regular expression finds something in."""

    base = str

    def schema(self, sources: Sources) -> Schema:
        """The pattern."""
        (key,) = self.given
        pattern = _text(sources, key, "a regular expression")
        try:
            re.compile(pattern)
        except re.error as error:
            raise UnresolvedError(f"needs a regular expression in {key!r}, and this is none: {error}") from error
        return {"pattern": pattern}


class DynamicConst(Dynamic):
    """Exactly the context's value."""

    def schema(self, sources: Sources) -> Schema:
        """The value."""
        return {"const": thaw(sources.value(self.given[0]))}


class DynamicFiltered(Dynamic):
    """One of a list's values that filters leave: `DynamicFiltered[("users", "active_only")]`.

    Args:
        key: Whose values.
        filters: Names of filters, applied one after the other.
    """

    def __init__(self, key: str, *filters: str) -> None:
        if not filters:
            raise ToolkitError(f"DynamicFiltered of {key!r} names no filter", hint="Write (key, filter).")
        self.given = (key, *filters)

    @property
    def filter_names(self) -> tuple[str, ...]:
        """The filters it applies."""
        return self.given[1:]

    def schema(self, sources: Sources) -> Schema:
        """An enum of what is left."""
        key = self.given[0]
        values = _list(key, sources.value(key))
        for name in self.filter_names:
            if name not in sources.filters:
                raise ToolkitError(f"there is no filter {name!r}", hint=f"There are {', '.join(sources.filters)}.")
            try:
                values = list(sources.filters[name](values))
            except Exception as error:
                raise UnresolvedError(
                    f"needs the filter {name!r}, which raised {type(error).__name__}: {error}"
                ) from error
        if not values:
            raise UnresolvedError(f"needs a value in {key!r} that {' and '.join(self.filter_names)} leaves")
        return {"enum": _choices(key, values)}


class DynamicNested(Dynamic):
    """What a dotted path leads to: a list's values, a dict's constraints, or exactly that value."""

    def schema(self, sources: Sources) -> Schema:
        """What the value says by its own kind."""
        return _by_kind(sources, self.given[0])


class DynamicConstraints(Dynamic):
    """Whatever fits a whole JSON Schema in the context."""

    def schema(self, sources: Sources) -> Schema:
        """The schema."""
        (key,) = self.given
        value = sources.value(key)
        if not isinstance(value, Mapping):
            raise UnresolvedError(f"needs a JSON Schema in {key!r}")
        return _constraints(value)


class DynamicUnion(Dynamic):
    """What any of several keys allows: `DynamicUnion[("users", "groups")]`."""

    def __init__(self, key: str, *more: str) -> None:
        self.given = (key, *more)

    def schema(self, sources: Sources) -> Schema:
        """One enum where all of them are lists, else any of them."""
        parts = [_by_kind(sources, key) for key in self.given]
        if all(part.keys() == {"enum"} for part in parts):
            return {"enum": _distinct([value for part in parts for value in part["enum"]])}
        return {"anyOf": parts}


class DynamicConditional(Dynamic):
    """One of two keys, as a third one is true or not: `DynamicConditional[("is_admin", "all", "own")]`."""

    def __init__(self, condition: str, if_true: str, if_false: str) -> None:
        self.given = (condition, if_true, if_false)

    def schema(self, sources: Sources) -> Schema:
        """What the chosen key allows."""
        condition, if_true, if_false = self.given
        return _by_kind(sources, if_true if sources.value(condition) else if_false)


_KINDS: Mapping[str, type[Dynamic]] = {
    kind.__name__: kind
    for kind in (
        *(DynamicStr, DynamicInt, DynamicFloat, DynamicArray, DynamicFormat, DynamicPattern, DynamicConst),
        *(DynamicFiltered, DynamicNested, DynamicConstraints, DynamicUnion, DynamicConditional),
    )
}


def unmarked(mark: Sequence[str]) -> Dynamic:
    """The dynamic type that a mark describes."""
    return _KINDS[mark[0]](*mark[1:])


def _by_kind(sources: Sources, key: str) -> Schema:
    value = sources.value(key)
    if isinstance(value, Mapping):
        return _constraints(value)
    if isinstance(value, list | tuple | frozenset):
        return {"enum": _choices(key, value)}
    return {"const": value}


def _text(sources: Sources, key: str, what: str) -> str:
    value = sources.value(key)
    if not isinstance(value, str):
        raise UnresolvedError(f"needs {what} in {key!r}")
    return value


def _constraints(value: Value) -> Schema:
    return cast("Schema", thaw(value))


def _list(key: str, value: Value) -> list[Value]:
    if not isinstance(value, list | tuple | frozenset):
        raise UnresolvedError(f"needs a list in {key!r}")
    items = list(cast("Iterable[Value]", value))
    return sorted(items, key=repr) if isinstance(value, frozenset) else items


def _choices(key: str, value: Value) -> list[Value]:
    """The values to choose from; one that is a dict stands for its `id`, else its `name`."""
    choices = _distinct([thaw(_stands_for(item)) for item in _list(key, value)])
    if not choices:
        raise UnresolvedError(f"needs a value in {key!r}, which is empty")
    return choices


def _stands_for(item: Value) -> Value:
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, Value]", item)
        return fields.get("id", fields.get("name", item))
    return item


def _distinct(values: list[Value]) -> list[Value]:
    """Each value once, in order; 1 and True are two."""
    seen: set[tuple[str, str]] = set()
    kept: list[Value] = []
    for value in values:
        mark = (type(value).__name__, repr(value))
        if mark not in seen:
            seen.add(mark)
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

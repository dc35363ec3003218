"""The dynamic types: parameter types whose JSON Schema depends on the current context.

`DynamicStr["projects"]` is short for `Annotated[str, DynamicStr("projects")]`, which type checkers accept. In a tool's
static schema each leaves a mark, which `llm_do.machines.dynamic_schema` finds and fills. How values of a
context are read as schemas is in `llm_do.machines.value_sources`.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from pydantic_core import PydanticCustomError, core_schema, to_jsonable_python

from llm_do.errors import ToolkitError
from llm_do.machines.frozen_values import Value, thaw
from llm_do.machines.value_sources import (
    Schema,
    Sources,
    UnresolvedError,
    choices,
    constraints,
    distinct,
    values_of,
)
from llm_do.project.gates import DYNAMIC_MARK

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

__all__ = [
    "CHECKS",
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
    "type_of_mark",
]

CHECKS: ContextVar[Mapping[Dynamic, Validator] | None] = ContextVar("llm_do_dynamic_checks", default=None)
"""The validators of dynamic types while arguments are validated again, when a call's turn has come."""


class Dynamic(ABC):
    """A parameter's type that depends on the context.

    Args:
        key: The key of the value that it depends on; dotted paths reach into values.
    """

    base: ClassVar[Any] = Any
    """The value's type in Python, which doesn't depend on the context."""

    def __init__(self, key: str, *more: str) -> None:
        self.names = _check_names(key, *more)
        if len(self.names) != 1:
            raise ToolkitError(
                f"{type(self).__name__} takes one key of the context, not {len(self.names)}",
                hint='name one key, such as `DynamicStr("user")`; a filter takes several',
            )

    def __class_getitem__(cls, names: str | tuple[str, ...]) -> Any:
        try:
            made = cls(*names) if isinstance(names, tuple) else cls(names)
        except TypeError as error:
            takes = ", ".join(inspect.signature(cls).parameters)
            raise ToolkitError(
                f"{cls.__name__} takes ({takes}), not {names!r}", hint="pass names of keys, in quotes"
            ) from error
        return Annotated[cls.base, made]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate as the static type does, then by `CHECKS`, if they are set.

        Pydantic finds the value however deep it is, and doesn't validate defaults, which the author chose and not the
        model.
        """
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: Value) -> Value:
        checks = CHECKS.get()
        if checks is None or self not in checks:
            return value
        try:
            found = next(iter(checks[self].iter_errors(to_jsonable_python(value, fallback=repr))), None)
            fault = found.message if found is not None else None
        except Exception as error:  # noqa: BLE001 - the schema is the project's: it may refer to anything
            fault = f"its schema can't be checked: {type(error).__name__}: {error}"
        if fault is not None:
            raise PydanticCustomError("dynamic", "{fault}", {"fault": fault})
        return value

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Mark the place that is filled in later."""
        return {**handler(schema), DYNAMIC_MARK: [type(self).__name__, *self.names]}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and cast("Dynamic", other).names == self.names

    def __hash__(self) -> int:
        return hash((type(self), self.names))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.names))})"

    @property
    def filter_names(self) -> tuple[str, ...]:
        """The filters it applies."""
        return ()

    @abstractmethod
    def schema(self, sources: Sources) -> Schema:
        """What the value must be in this context."""


def _check_names(*names: str) -> tuple[str, ...]:
    """The keys and filters that a type names, all of which must be strings."""
    for each in names:
        if not isinstance(each, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolkitError(
                f"keys of a context and names of filters are strings, not {each!r}", hint="write the key in quotes"
            )
    return names


class _Typed(Dynamic):
    """From a list: one of its values. From a dict: its constraints."""

    kinds: ClassVar[tuple[type, ...]] = (str,)
    noun: ClassVar[str] = "strings"

    def schema(self, sources: Sources) -> Schema:
        """An enum, or constraints."""
        (key,) = self.names
        value = sources.value(key)
        if isinstance(value, Mapping):
            return constraints(value)
        items = choices(key, value)
        if any(not isinstance(item, self.kinds) or isinstance(item, bool) for item in items):
            raise UnresolvedError(f"needs {self.noun} in {key!r}, which holds something else")
        return {"enum": items}


class DynamicStr(_Typed):
    """A string: one of a list, or one that fits a dict's constraints.

    Example:
        >>> from llm_do.machines.context import Context
        >>> from llm_do.machines.value_sources import BUILTIN_FILTERS
        >>> sources = Sources(Context(initial_data={"projects": ["alpha", "beta"]}), BUILTIN_FILTERS)
        >>> DynamicStr("projects").schema(sources)
        {'enum': ['alpha', 'beta']}
    """

    base = str


class DynamicInt(_Typed):
    """An integer: one of a list, or one that fits a dict's constraints."""

    base = int
    kinds = (int,)
    noun = "integers"


class DynamicFloat(_Typed):
    """A number: one of a list, or one that fits a dict's constraints."""

    base = float
    kinds = (int, float)
    noun = "numbers"


class DynamicArray(Dynamic):
    """A list whose items are among a list's values, or fit a dict's constraints."""

    base = list[Any]

    def schema(self, sources: Sources) -> Schema:
        """A schema for the items."""
        (key,) = self.names
        value = sources.value(key)
        return {"items": constraints(value) if isinstance(value, Mapping) else {"enum": choices(key, value)}}


class DynamicFormat(Dynamic):
    """A string in the format that the context names, such as `email` or `date`."""

    base = str

    def schema(self, sources: Sources) -> Schema:
        """The format."""
        return {"format": sources.text(self.names[0], "a format's name")}


class DynamicPattern(Dynamic):
    """A string that the context's regular expression matches somewhere."""

    base = str

    def schema(self, sources: Sources) -> Schema:
        """The pattern."""
        (key,) = self.names
        pattern = sources.text(key, "a regular expression")
        try:
            re.compile(pattern)
        except re.error as error:
            raise UnresolvedError(f"needs a valid regular expression in {key!r}: {error}") from error
        return {"pattern": pattern}


class DynamicConst(Dynamic):
    """Exactly the context's value."""

    def schema(self, sources: Sources) -> Schema:
        """The value."""
        return {"const": thaw(sources.value(self.names[0]))}


class DynamicFiltered(Dynamic):
    """One of a list's values that pass filters: `DynamicFiltered[("users", "active_only")]`.

    Args:
        key: The key of the list.
        filters: Names of filters, applied one after the other.
    """

    def __init__(self, key: str, *filters: str) -> None:
        if not filters:
            raise ToolkitError(f"DynamicFiltered of {key!r} names no filter", hint="Write (key, filter).")
        self.names = _check_names(key, *filters)

    @property
    def filter_names(self) -> tuple[str, ...]:
        """The filters it applies."""
        return self.names[1:]

    def schema(self, sources: Sources) -> Schema:
        """An enum of the values that are left."""
        key = self.names[0]
        values = values_of(key, sources.value(key))
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
        return {"enum": choices(key, values)}


class DynamicNested(Dynamic):
    """The value at the end of a dotted path: one of a list, what fits a dict's constraints, or exactly that value."""

    def schema(self, sources: Sources) -> Schema:
        """What the value's own type implies."""
        return sources.schema(self.names[0])


class DynamicConstraints(Dynamic):
    """Anything that fits a JSON Schema in the context."""

    def schema(self, sources: Sources) -> Schema:
        """The schema."""
        (key,) = self.names
        value = sources.value(key)
        if not isinstance(value, Mapping):
            raise UnresolvedError(f"needs a JSON Schema in {key!r}")
        return constraints(value)


class DynamicUnion(Dynamic):
    """Anything that one of several keys allows: `DynamicUnion[("users", "groups")]`."""

    def __init__(self, key: str, *more: str) -> None:
        self.names = _check_names(key, *more)

    def schema(self, sources: Sources) -> Schema:
        """One enum if all of them are lists, else an `anyOf`."""
        parts = [sources.schema(key) for key in self.names]
        if all(part.keys() == {"enum"} for part in parts):
            return {"enum": distinct([value for part in parts for value in part["enum"]])}
        return {"anyOf": parts}


class DynamicConditional(Dynamic):
    """What one of two keys allows, chosen by a third: `DynamicConditional[("is_admin", "all", "own")]`."""

    def __init__(self, condition: str, if_true: str, if_false: str) -> None:
        self.names = _check_names(condition, if_true, if_false)

    def schema(self, sources: Sources) -> Schema:
        """What the chosen key allows."""
        condition, if_true, if_false = self.names
        return sources.schema(if_true if sources.value(condition) else if_false)


_KINDS: Mapping[str, type[Dynamic]] = {
    kind.__name__: kind
    for kind in (
        *(DynamicStr, DynamicInt, DynamicFloat, DynamicArray, DynamicFormat, DynamicPattern, DynamicConst),
        *(DynamicFiltered, DynamicNested, DynamicConstraints, DynamicUnion, DynamicConditional),
    )
}


def type_of_mark(mark: Sequence[str]) -> Dynamic:
    """The dynamic type that a mark describes."""
    return _KINDS[mark[0]](*mark[1:])

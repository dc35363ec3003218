"""`Context`: the values that the tools of a toolkit share, and `ContextSchema`: what they must be.

A copy takes the same time whatever the size. Which context a tool sees, and when its changes count, is decided in
`llm_do.machines.tool_gate`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, cast

import immutables
import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]
from referencing import Registry

from llm_do._startup.frozen import frozen
from llm_do.errors import ContextValidationError, ToolkitError
from llm_do.machines.frozen_values import MOST_LEVELS, Value, freeze, thaw
from llm_do.project.tools.argument_schemas import validator_class

__all__ = ["Context", "ContextSchema", "validator_of"]

_MISSING = object()


def _is_array(_: object, value: object) -> bool:
    return isinstance(value, list | tuple)


_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("array", _is_array)
_CHECKER: Any = cast("Any", extend(validator_class(), type_checker=_TYPES))


def validator_of(schema: Mapping[str, Any]) -> Validator:
    """A validator that checks formats too and never follows a reference to somewhere else."""
    _CHECKER.check_schema(schema)
    # An empty registry: a `$ref` to somewhere else is a fault, never a request.
    registry = Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return _CHECKER(schema, registry=registry, format_checker=_CHECKER.FORMAT_CHECKER)


@frozen
class _Rule:
    schema: Mapping[str, Any]
    validator: Validator

    def check(self, key: str, value: Value) -> None:
        try:
            fault = next(iter(self.validator.iter_errors(value)), None)
        except Exception as error:
            raise ContextValidationError(
                f"{key}: its schema can't be checked: {error}", key=key, rule="$ref"
            ) from error
        if fault is not None:
            rule = str(fault.validator)
            where = "".join(f".{part}" for part in fault.absolute_path)
            raise ContextValidationError(f"{key}{where}: {fault.message} (rule: {rule})", key=key, rule=rule)


class ContextSchema:
    """JSON Schemas for the values of a context, by key. Every write is checked where validation is on."""

    __slots__ = ("_context", "_rules")

    def __init__(self, context: Context, rules: immutables.Map[str, _Rule] | None = None) -> None:
        self._context = context
        self._rules: immutables.Map[str, _Rule] = immutables.Map() if rules is None else rules

    def define(self, key: str, schema: Mapping[str, Any]) -> None:
        """Define the JSON Schema of a key's value."""
        if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolkitError(
                f"the schema of {key!r} isn't a JSON Schema: it must be a dict, not {schema!r}",
                hint='write a schema such as {"type": "integer"}',
            )
        try:
            kept = freeze(dict(schema))
            rule = _Rule(kept, validator_of(kept))
        except jsonschema.SchemaError as error:
            raise ToolkitError(
                f"the schema of {key!r} isn't a JSON Schema: {error.message}",
                hint="correct the schema, or leave the key's schema out",
            ) from error
        except RecursionError:
            raise ToolkitError(
                f"the schema of {key!r} contains itself, or nests too deeply",
                hint="write out the levels that you need; a schema that refers to itself can't be checked",
            ) from None
        self._context.define(key, rule)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The schema of a key, None if it has none."""
        rule = self._rules.get(key)
        return rule.schema if rule is not None else None

    def check(self, key: str, value: Value) -> None:
        """Raise `ContextValidationError` if a value doesn't fit the key's schema."""
        rule = self._rules.get(key)
        if rule is not None:
            rule.check(key, value)

    def of(self, context: Context, more: Mapping[str, _Rule] | None = None) -> ContextSchema:
        """The same schemas, and `more`, for another context."""
        return ContextSchema(context, self._rules.update(more) if more else self._rules)

    def same(self, other: ContextSchema) -> bool:
        """Whether the other has the very same schemas."""
        return self._rules is other._rules

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._rules))


class Context:
    """A dictionary of values, shared by tools.

    Lists and dicts are copied when they are stored, and can't be changed when they are read. Copies share their values.

    Args:
        validation_enabled: Whether every write is checked by `schema`.
        initial_data: What it holds to begin with.

    Raises:
        ToolkitError: A key is not a string.

    Example:
        >>> context = Context(initial_data={"project": {"id": "alpha"}})
        >>> context.get("project.id"), context.get("project.owner", "nobody")
        ('alpha', 'nobody')
        >>> branch = context.copy()
        >>> branch.set("project", {"id": "beta"})
        >>> context.get("project.id"), branch.get("project.id")
        ('alpha', 'beta')
    """

    __slots__ = ("_initial", "_map", "_schema", "_sealed", "_touched", "_validates")

    def __init__(self, validation_enabled: bool = False, initial_data: Mapping[str, Value] | None = None) -> None:
        self._validates = validation_enabled
        self._sealed = False
        self._schema = ContextSchema(self)
        self._map: immutables.Map[str, Value] = immutables.Map()
        self._map = self._with_values(initial_data or {})
        self._initial = self._map
        self._touched: set[str] = set()

    @property
    def validation_enabled(self) -> bool:
        """Whether writes are checked."""
        return self._validates

    @property
    def schema(self) -> ContextSchema:
        """The schemas of its values."""
        return self._schema

    @property
    def data(self) -> immutables.Map[str, Value]:
        """Everything it holds, as an immutable map."""
        return self._map

    @property
    def initial_data(self) -> immutables.Map[str, Value]:
        """What it held to begin with."""
        return self._initial

    def get(self, key: str, default: Value = None) -> Value:
        """The value of a key, or at the end of a dotted path.

        Args:
            key: A key, or a path through nested dicts and, by index, lists. A key that has dots in it comes first.
            default: Returned where there is no value.
        """
        value = self._map.get(key, _MISSING)
        if value is _MISSING and "." in key:
            value = _find(self._map, key.split("."))
        return default if value is _MISSING else value

    def has(self, key: str) -> bool:
        """Whether there is a value, also at the end of a dotted path."""
        return self.get(key, _MISSING) is not _MISSING

    def set(self, key: str, value: Value) -> None:
        """Set one key; dots in it have no meaning.

        Raises:
            ContextValidationError: The value doesn't fit its schema; nothing is changed.
        """
        self.update({key: value})

    def update(self, values: Mapping[str, Value] | None = None, /, **more: Value) -> None:
        """Set several keys, all or none.

        Raises:
            ContextValidationError: A value doesn't fit its schema; nothing is changed.
        """
        self._require_writable()
        both = {**(values or {}), **more}
        self._map = self._with_values(both)
        self._touched.update(both)

    def delete(self, key: str) -> None:
        """Remove a key.

        Raises:
            KeyError: There is no such key.
        """
        self._require_writable()
        self._map = self._map.delete(key)
        self._touched.add(key)

    def copy(self) -> Context:
        """An independent context with the same values and schemas, in a time that doesn't depend on its size."""
        return self._like(self._map)

    def deep_copy(self) -> Context:
        """A copy that shares nothing, not even objects of the project's own classes."""
        return self._like(immutables.Map({key: freeze(copy.deepcopy(value)) for key, value in self._map.items()}))

    def validating(self) -> Context:
        """A copy that checks every write; its present values are checked now.

        Raises:
            ContextValidationError: A value doesn't fit its schema.
        """
        made = self.copy()
        made._validates = True
        for key, value in made._map.items():
            made._schema.check(key, value)
        return made

    def sealed(self) -> Context:
        """A read-only context with the same values; itself if it is read-only."""
        if self._sealed:
            return self
        made = self._like(self._map)
        made._sealed = True
        return made

    def with_data(self, data: Mapping[str, Value]) -> Context:
        """A context with the same schemas and other values, which aren't checked.

        Args:
            data: The values; an immutable map isn't copied.
        """
        kept = data if isinstance(data, immutables.Map) else {key: freeze(value) for key, value in data.items()}
        return self._like(cast("immutables.Map[str, Value]", kept) if kept is data else immutables.Map(kept))

    def changes(self) -> dict[str, Value]:
        """The keys written since it was made or copied, with their values; None for those that were removed."""
        return {key: self._map.get(key) for key in sorted(self._touched)}

    def define(self, key: str, rule: Any) -> None:
        """Add a rule that `schema.define` has made."""
        self._require_writable()
        if self._validates and key in self._map:
            rule.check(key, self._map[key])
        self._schema = self._schema.of(self, {key: rule})

    def to_dict(self) -> dict[str, Value]:
        """Everything it holds, sorted by key, as ordinary dicts and lists that the caller may change."""
        return {key: thaw(self._map[key]) for key in sorted(self._map)}

    def same(self, other: Context) -> bool:
        """Whether the other holds the very same values and schemas; compares no values."""
        return self._map is other._map and self._schema.same(other._schema)

    def keys(self) -> Iterator[str]:
        """The keys."""
        return iter(self._map)

    def items(self) -> Iterator[tuple[str, Value]]:
        """Keys and values."""
        return iter(self._map.items())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.has(key)

    def __getitem__(self, key: str) -> Value:
        value = self.get(key, _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Value) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._map)

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and (self._map is other._map or self._map == other._map)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Context({dict(self._map)!r})"

    def _with_values(self, values: Mapping[str, Value]) -> immutables.Map[str, Value]:
        """The map with these values, all of which have been checked."""
        frozen: dict[str, Value] = {}
        for key, value in values.items():
            if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ToolkitError(f"keys of a context are strings, not {key!r}", hint="name the key by a string")
            try:
                frozen[key] = freeze(value)
            except RecursionError:
                message = f"{key}: it contains itself, or nests more than {MOST_LEVELS} lists and dicts"
                raise ContextValidationError(message, key=key, rule="depth") from None
            if self._validates:
                self._schema.check(key, frozen[key])
        return self._map.update(frozen) if frozen else self._map

    def _like(self, data: immutables.Map[str, Value]) -> Context:
        made = object.__new__(Context)
        made._validates, made._sealed = self._validates, False
        made._map, made._initial = data, self._initial
        made._touched = set()
        made._schema = self._schema.of(made)
        return made

    def _require_writable(self) -> None:
        if self._sealed:
            raise ToolkitError(
                "this context is read-only",
                hint="Change a copy() of it; in a tool of the toolkit, change `ctx.state`.",
            )


_MOST_DIGITS = 18
"""Digits of an index; no list that fits into memory needs more."""


def _find(value: Value, parts: list[str]) -> Value:
    """The value at the end of a path; at each level the longest key that matches comes first."""
    if not parts:
        return value
    if len(parts) > MOST_LEVELS:
        return _MISSING
    if isinstance(value, list | tuple):
        items = cast("list[Value]", value)
        if parts[0].isdecimal() and len(parts[0]) <= _MOST_DIGITS and int(parts[0]) < len(items):
            return _find(items[int(parts[0])], parts[1:])
        return _MISSING
    if not isinstance(value, Mapping):
        return _MISSING
    mapping = cast("Mapping[str, Value]", value)
    for length in range(len(parts), 0, -1):
        key = ".".join(parts[:length])
        if key in mapping:
            found = _find(mapping[key], parts[length:])
            if found is not _MISSING:
                return found
    return _MISSING

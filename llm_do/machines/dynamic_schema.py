"""A tool's dynamic schema: its static one, with the places of dynamic types filled in from a context.

What the types mean is in `llm_do.machines.dynamic_types`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias, cast

import jsonschema
from jsonschema.protocols import Validator
from pydantic_core import to_jsonable_python

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolkitError
from llm_do.machines.context import validator_of
from llm_do.machines.dynamic_types import Dynamic, type_of_mark
from llm_do.machines.value_sources import Sources, UnresolvedError
from llm_do.project.gates import DYNAMIC_MARK

__all__ = ["DynamicSchema", "Resolved"]

Path: TypeAlias = "tuple[str | int, ...]"


@frozen
class Resolved:
    """A tool's schema in one context.

    Args:
        schema: What the model is shown.
        checks: A validator for each dynamic type.
        reason: Why the tool has no schema in this context, None where it has one.
    """

    schema: dict[str, Any]
    checks: Mapping[Dynamic, Validator] = field(default_factory=dict[Dynamic, Validator])
    reason: str | None = None


class DynamicSchema:
    """A tool's schema with places that are filled in from a context.

    Args:
        schema: The tool's JSON Schema, with marks.
    """

    __slots__ = ("places", "static")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.places: dict[Path, Dynamic] = {path: type_of_mark(mark) for path, mark in _marks(schema, ())}
        self.static: dict[str, Any] = _without_marks(schema)

    @property
    def filter_names(self) -> set[str]:
        """The filters it needs."""
        return {name for dynamic in self.places.values() for name in dynamic.filter_names}

    def resolve(self, sources: Sources) -> Resolved:
        """The schema in a context."""
        schema: Any = self.static
        checks: dict[Dynamic, Validator] = {}
        for path, dynamic in self.places.items():
            try:
                filled = _json_schema(dynamic.schema(sources))
                if dynamic not in checks:
                    checks[dynamic] = validator_of(filled)
                schema = _fill(schema, path, filled)
            except UnresolvedError as reason:
                return Resolved({}, reason=f"it {reason}")
            except jsonschema.SchemaError as error:
                return Resolved({}, reason=f"it needs a JSON Schema in {dynamic.names[0]!r}: {error.message}")
            except ToolkitError:
                raise
            except Exception as error:  # noqa: BLE001 - values are the project's: if one can't be read, the tool isn't available
                return Resolved({}, reason=f"it can't read {dynamic.names[0]!r}: {type(error).__name__}: {error}")
        return Resolved(schema, checks)


def _json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as it is sent to models: dates, ids and the like as strings."""
    data: dict[str, Any] = to_jsonable_python(schema)
    json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    return data


_DATA = ("default", "examples", "enum", "const")
"""Keywords whose values aren't schemas."""

_NAMES = ("properties", "patternProperties", "$defs", "dependentSchemas")
"""Keywords that hold schemas by name; a name may look like a keyword."""


def _marks(schema: object, path: Path, *, named: bool = False) -> Iterator[tuple[Path, list[str]]]:
    """Every mark in a schema, or in schemas by their names, with its path."""
    if isinstance(schema, Mapping):
        node = cast("Mapping[str, Any]", schema)
        if not named and DYNAMIC_MARK in node:
            yield path, node[DYNAMIC_MARK]
        for key, value in node.items():
            if named or key not in (DYNAMIC_MARK, *_DATA):
                yield from _marks(value, (*path, key), named=not named and key in _NAMES)
    elif isinstance(schema, list):
        for index, value in enumerate(cast("list[Any]", schema)):
            yield from _marks(value, (*path, index))


def _without_marks(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        node = cast("Mapping[str, Any]", schema)
        return {key: _without_marks(value) for key, value in node.items() if key != DYNAMIC_MARK}
    if isinstance(schema, list):
        return [_without_marks(value) for value in cast("list[Any]", schema)]
    return schema


def _fill(schema: Any, path: Path, filled: Mapping[str, Any]) -> Any:
    """A copy of a schema with keywords added to the node at a path; the rest is shared."""
    if not path:
        return {**schema, **filled}
    head, rest = path[0], path[1:]
    if isinstance(schema, list):
        items = list(cast("list[Any]", schema))
        items[cast("int", head)] = _fill(items[cast("int", head)], rest, filled)
        return items
    return {**schema, head: _fill(schema[head], rest, filled)}

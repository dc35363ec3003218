"""Pydantic models and dataclasses as the fields that they are written by, so that a large one is converted in parts.

A model's field is taken apart only where pydantic's own schema says that it is written item by item. What has a
serializer of its own is converted by it, in one go.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol, cast

from llm_do.text.json_data import fields_data

__all__ = ["Conversion", "field_values", "is_model", "model_data", "plain_fields"]

_ITEMS: Mapping[str, type[Any]] = {"list": list, "tuple": tuple}
"""What is written item by item; a part of a set would have another order."""

_ANY: Mapping[str, Any] = {"type": "any"}
_MISSING: Any = object()
_TRANSPARENT = frozenset({"default", "nullable", "function-before", "function-after", "function-wrap"})
"""Schemas around another one that don't change how a value is written, unless they have a `serialization`."""


class Conversion(Protocol):
    """Converts values to JSON data, large ones in parts.

    Args:
        strict: As `to_json_data` takes it.
    """

    strict: bool

    def is_large(self, value: object) -> bool:
        """Whether a value is to be converted in parts."""
        ...

    def batches(self, values: Any) -> Iterator[list[Any]]:
        """Return the items of a container, or the members of a dict, in groups that are converted in one go."""
        ...

    def data(self, value: object) -> Any:
        """Convert a value by what it is, not by what a field is declared as."""
        ...


def is_model(value: object) -> bool:
    """Whether pydantic writes a value by a serializer of its class: a model, or a dataclass of pydantic's.

    Example:
        >>> is_model({"a": 1})
        False
    """
    return hasattr(type(value), "__pydantic_serializer__")


def field_values(value: object) -> Collection[Any] | None:
    """The items of a container or the values of a record's fields; None for anything else.

    Example:
        >>> list(field_values({"a": 1})), list(field_values({2})), field_values("text")
        ([1], [2], None)
    """
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return cast("Collection[Any]", value)
    kind: Any = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return plain_fields(value).values()
    if not hasattr(kind, "__pydantic_serializer__"):
        return None
    values: dict[str, Any] = getattr(value, "__dict__", {})
    extra: dict[str, Any] | None = getattr(value, "__pydantic_extra__", None)
    return [*values.values(), *extra.values()] if extra else values.values()


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that have a value."""
    found = ((field.name, getattr(value, field.name, _MISSING)) for field in dataclasses.fields(value))
    return {name: item for name, item in found if item is not _MISSING}


def model_data(model: Any, conversion: Conversion) -> Any:
    """The JSON data of a model, its large fields in parts."""
    kind: Any = type(cast("object", model))
    values: dict[str, Any] | None = getattr(model, "__dict__", None)
    schemas = _Schemas(kind.__pydantic_core_schema__)
    fields = schemas.fields()
    extra: dict[str, Any] = getattr(model, "__pydantic_extra__", None) or {}
    if values is None or not (fields or (extra and schemas.has_fields())):
        return fields_data(model, strict=conversion.strict)
    one = copy.copy(model)

    def of_field(name: str) -> Any:
        def dump(part: object) -> Any:
            one.__dict__[name] = part
            data = fields_data(one, include=None if schemas.is_root else {name}, strict=conversion.strict)
            return data if schemas.is_root else next(iter(data.values()))

        return _parts(values[name], fields[name]["schema"], dump, schemas, conversion)

    if schemas.is_root:
        return of_field("root")
    written: dict[str, Any] = {}
    for name, field in fields.items():
        if "serialization_exclude_if" in field or not conversion.is_large(values.get(name)):
            written.update(fields_data(model, include={name}, strict=conversion.strict))
        elif not field.get("serialization_exclude"):
            written[field.get("serialization_alias", name)] = of_field(name)
    if not conversion.is_large(extra):
        extra = {}
    for name, value in extra.items():

        def dump_extra(part: object, name: str = name) -> Any:
            one.__pydantic_extra__[name] = part
            return next(iter(fields_data(one, include={name}, strict=conversion.strict).values()))

        written[name] = _parts(value, schemas.extra(), dump_extra, schemas, conversion)
    written.update(fields_data(model, exclude={*fields, *extra}, strict=conversion.strict))
    return written


def _parts(value: Any, schema: Any, dump: Callable[[object], Any], schemas: _Schemas, conversion: Conversion) -> Any:
    """The JSON data of a value that is declared as `schema`.

    Args:
        value: The value.
        schema: What it is declared as, in pydantic's core schema.
        dump: Converts a value that is declared so in one go.
        schemas: The schemas of the model.
        conversion: The conversion.
    """
    plain = schemas.plain(schema)
    if plain is None or not conversion.is_large(value):
        return dump(value)
    kind: str = plain["type"]
    exact: Any = type(cast("object", value))
    if kind == "any" or (kind in ("model", "dataclass") and plain.get("cls") is exact):
        return conversion.data(value)
    if kind == "dict" and exact is dict and _plain_keys(plain):
        return _members(value, plain.get("values_schema", _ANY), dump, schemas, conversion)
    if _ITEMS.get(kind) is exact and (kind != "tuple" or plain.get("variadic_item_index") == 0):
        items = plain.get("items_schema", _ANY)
        return _items(value, items[0] if kind == "tuple" else items, dump, schemas, conversion)
    return dump(value)


def _items(
    value: Any, schema: Any, dump: Callable[[Any], list[Any]], schemas: _Schemas, conversion: Conversion
) -> list[Any]:
    kind: Any = type(cast("object", value))
    found: list[Any] = []
    for batch in conversion.batches(value):
        if len(batch) == 1:
            found.append(_parts(batch[0], schema, lambda item: dump(kind([item]))[0], schemas, conversion))
        else:
            found.extend(dump(kind(batch)))
    return found


def _members(
    value: dict[Any, Any], schema: Any, dump: Callable[[Any], dict[str, Any]], schemas: _Schemas, conversion: Conversion
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for batch in conversion.batches(value.items()):
        key, item = batch[0]
        if len(batch) == 1:
            (name,) = fields_data({key: None})

            def dump_item(part: object, key: Any = key) -> Any:
                return next(iter(dump({key: part}).values()))

            found[name] = _parts(item, schema, dump_item, schemas, conversion)
        else:
            found.update(dump(dict(batch)))
    return found


def _plain_keys(schema: Mapping[str, Any]) -> bool:
    return schema.get("keys_schema", _ANY)["type"] in ("any", "str", "int")


class _Schemas:
    """The schema of a model, as pydantic keeps it with the class.

    Args:
        schema: Its core schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._named: dict[str, Any] = {each["ref"]: each for each in schema.get("definitions", ())}
        self._model: Mapping[str, Any] = self.plain(schema["schema"] if "definitions" in schema else schema) or {}
        self.is_root = bool(self._model.get("root_model"))

    def fields(self) -> dict[str, Any]:
        """The schemas of its fields by their names; none if it isn't written by fields."""
        inner: Any = self._model.get("schema", {})
        if self.is_root:
            return {"root": {"schema": inner}}
        inner = self.plain(inner) or {}
        if inner.get("type") == "model-fields":
            return inner["fields"]
        if inner.get("type") == "dataclass-args":
            return {field["name"]: field for field in inner["fields"]}
        return {}

    def has_fields(self) -> bool:
        """Whether it is written by fields, even if it declares none."""
        return (self.plain(self._model.get("schema", {"type": ""})) or {}).get("type") == "model-fields"

    def extra(self) -> Mapping[str, Any]:
        """The schema of the fields that it doesn't declare."""
        inner = self.plain(self._model.get("schema", {"type": ""})) or {}
        return inner.get("extras_schema") or _ANY

    def plain(self, schema: Any) -> Mapping[str, Any] | None:
        """The schema that says how a value is written; None if a serializer says it."""
        while True:
            own: Any = schema.get("serialization")
            kind = schema.get("type")
            if kind == "json-or-python" and schema["json_schema"]["type"] == "list" and _is_pydantics(own):
                return schema["json_schema"]  # a Sequence: the serializer is pydantic's own
            if own is not None:
                return None
            if kind == "definition-ref":
                schema = self._named.get(schema["schema_ref"], {"type": ""})
            elif kind in _TRANSPARENT:
                schema = schema["schema"]
            else:
                return schema


def _is_pydantics(serialization: Any) -> bool:
    function = serialization.get("function") if serialization else None
    return getattr(function, "__module__", "").startswith("pydantic.")

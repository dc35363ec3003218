"""Converts one step's output to the next step's input: text, a list or data, whichever the next member takes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

from llm_do.flows.joined import JoinedText
from llm_do.project.functions import input_annotation, takes_context
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.project.registry import Registered
from llm_do.runtime.context.call_context import CallContext
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text

__all__ = ["plain_input", "private_copy", "step_input"]


def step_input(found: Registered, value: Any, ctx: CallContext) -> Any:
    """Convert a value to the input of a step."""
    if found.kind == "tool" and not takes_context(found.value):
        return _arguments(found, plain_input(value), ctx)
    model = _model(found, ctx)
    if isinstance(value, JoinedText):
        value = _list_or_text(found, model, value)
    if model is None or isinstance(value, model):
        return value
    if model is AnyInput:
        value = plain_input(value)
        return cast("Any", value) if isinstance(value, str | Mapping) else {"input": to_json_data(value)}
    if issubclass(model, PromptInput) and not _has_fields_of(model, value):
        value = plain_input(value)
        return value if isinstance(value, PromptInput) else {"input": output_text(value)}
    return cast("Any", value) if isinstance(value, str | Mapping | BaseModel) else to_json_data(value)


def _list_or_text(found: Registered, model: type[BaseModel] | None, value: JoinedText) -> Any:
    """Convert joined outputs for a member with an input model or annotation: to the list, if that is what it takes."""
    if model is not None and issubclass(model, AnyInput | PromptInput):
        return value
    try:
        kind: Any = model if model is not None else input_annotation(found.value)
        schema = TypeAdapter(kind).json_schema()
    except Exception:  # noqa: BLE001 - not every type of a project has a schema
        return value
    if model is None:
        return value.as_list() if _takes_list(schema) else value
    properties: dict[str, Any] = schema.get("properties", {})
    name = _only_name(properties, schema.get("required", []))
    return {name: value.as_list()} if name is not None and _takes_list(properties[name]) else value


def _takes_list(schema: Mapping[str, Any]) -> bool:
    """Check whether a schema accepts a list, but no text."""
    kinds: set[str] = set()
    for option in schema.get("anyOf", [schema]):
        kind: str | list[str] = option.get("type", "")
        kinds.update([kind] if isinstance(kind, str) else kind)
    return "array" in kinds and "string" not in kinds


def _only_name(properties: Mapping[str, Any], required: list[str]) -> str | None:
    """Return the name of the only field, or of the only required one."""
    if len(required) == 1:
        return required[0]
    return next(iter(properties)) if len(properties) == 1 else None


def _has_fields_of(model: type[BaseModel], value: Any) -> bool:
    """Check whether a value has only fields of a model that extends `PromptInput`."""
    fields = _fields(value) if model is not PromptInput else None
    return fields is not None and set(fields) <= set(model.model_fields)


def _model(found: Registered, ctx: CallContext) -> type[BaseModel] | None:
    """Return a member's input model; None for a function whose input is annotated with another type."""
    if found.kind == "flow":
        return found.value.input_model(ctx.runtime.registry)
    if found.kind == "agent":
        return found.value.input_model or PromptInput
    annotation = input_annotation(found.value)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def private_copy(value: Any) -> Any:
    """Copy the input for one of several parallel members, so that none can change another's.

    Example:
        >>> data = {"notes": []}
        >>> private_copy(data)["notes"] is data["notes"]
        False
    """
    if isinstance(value, JoinedText):
        return JoinedText(value, map(private_copy, value.outputs))
    if isinstance(value, BaseModel | dict | list) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        try:
            return copy.deepcopy(cast("Any", value))
        except Exception:  # noqa: BLE001 - what can't be copied (a connection, a lock) is shared on purpose
            return cast("Any", value)
    return value


def plain_input(value: Any) -> Any:
    """Convert a flow's input for code: a string if it is only text, else its fields."""
    if isinstance(value, PromptInput) and not value.attachments and type(value) is PromptInput:
        return value.input
    if isinstance(value, AnyInput):
        fields = value.model_dump()
        return fields["input"] if list(fields) == ["input"] else fields
    return value


def _arguments(found: Registered, value: Any, ctx: CallContext) -> Any:
    """Convert a step's input to arguments of a function: by name if the fields match, else as its only argument."""
    schema = ctx.runtime.builder.tool(found.value, found.name).function_schema.json_schema
    properties: dict[str, Any] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    fields = _fields(value)
    if fields is not None and set(fields) <= set(properties) and set(required) <= set(fields):
        return fields
    name = _only_name(properties, required)
    if name is None:
        return fields if fields is not None else {"input": value}
    if isinstance(value, JoinedText) and _takes_list(properties[name]):
        return {name: value.as_list()}
    if properties[name].get("type") == "string" and not isinstance(value, str):
        value = output_text(value)
    return {name: value}


def _fields(value: Any) -> dict[str, Any] | None:
    """Return a value's fields by name; None if it has none."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): item for name, item in cast("Mapping[Any, Any]", value).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    return None

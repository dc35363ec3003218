"""What one step's output is as the next step's input: text for what takes text, data for what takes data."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

from llm_do.project.functions import input_annotation, takes_context
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.project.registry import Registered
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.record.results import output_text
from llm_do.text.json_data import to_json_data

__all__ = ["private_copy", "step_input"]


def step_input(found: Registered, value: Any, ctx: CallContext) -> Any:
    """The input of a step."""
    if found.kind == "tool" and not takes_context(found.value):
        return _arguments(found, _plain(value), ctx)
    model = _model(found, ctx)
    if model is None or isinstance(value, model):
        return value
    if model is AnyInput:
        value = _plain(value)
        return cast("Any", value) if isinstance(value, str | Mapping) else {"input": to_json_data(value)}
    if issubclass(model, PromptInput) and not _has_fields_of(model, value):
        value = _plain(value)
        return value if isinstance(value, PromptInput) else {"input": output_text(value)}
    return cast("Any", value) if isinstance(value, str | Mapping | BaseModel) else to_json_data(value)


def _has_fields_of(model: type[BaseModel], value: Any) -> bool:
    """Whether a value is data for the fields that a model has besides those of text."""
    named = _named(value) if model is not PromptInput else None
    return named is not None and set(named) <= set(model.model_fields)


def _model(found: Registered, ctx: CallContext) -> type[BaseModel] | None:
    """The input model of what is called; None for a function that says another type."""
    if found.kind == "flow":
        return found.value.input_model(ctx.runtime.registry)
    if found.kind == "agent":
        return found.value.input_model or PromptInput
    annotation = input_annotation(found.value)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def private_copy(value: Any) -> Any:
    """A copy for one of several members that get the same input, so that none can change another's.

    Example:
        >>> given = {"notes": []}
        >>> private_copy(given)["notes"] is given["notes"]
        False
    """
    if isinstance(value, BaseModel | dict | list) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        try:
            return copy.deepcopy(cast("Any", value))
        except Exception:  # noqa: BLE001 - what can't be copied (a connection, a lock) is shared on purpose
            return cast("Any", value)
    return value


def _plain(value: Any) -> Any:
    """A flow's input as code takes it: text where that is all it is, else its fields."""
    if isinstance(value, PromptInput) and not value.attachments and type(value) is PromptInput:
        return value.input
    if isinstance(value, AnyInput):
        fields = value.model_dump()
        return fields["input"] if list(fields) == ["input"] else fields
    return value


def _arguments(found: Registered, value: Any, ctx: CallContext) -> Any:
    """A step's input as the arguments of a function: by name where they fit, else as its only one."""
    schema = ctx.runtime.builder.tool(found.value, found.name).function_schema.json_schema
    properties: dict[str, Any] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    named = _named(value)
    if named is not None and set(named) <= set(properties) and set(required) <= set(named):
        return named
    if len(required) != 1 and len(properties) != 1:
        return named if named is not None else {"input": value}
    name = required[0] if len(required) == 1 else next(iter(properties))
    if properties[name].get("type") == "string" and not isinstance(value, str):
        value = output_text(value)
    return {name: value}


def _named(value: Any) -> dict[str, Any] | None:
    """A value's fields by name, where it has any."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): item for name, item in cast("Mapping[Any, Any]", value).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    return None

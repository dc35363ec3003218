"""What is wrong with an agent that is declared in code: values that no agent can have, in the words used for files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec, is_of_type, type_name
from llm_do.text.exception_text import first_fault

__all__ = ["check_spec", "find_spec_fault"]

_LEAST = {"max_steps": 1, "max_tokens": 1, "retries": 0, "loop_threshold": 0}
"""The fields that are counts, each with its smallest value, as in an agent file."""

_LISTS = {
    "tools": "names, functions or tool objects",
    "toolsets": "names, toolsets or factories",
    "handoffs": "names or AgentSpecs",
    "skills": "paths or skills",
    "capabilities": "names or capabilities",
    "hooks": "pairs of a point and a function",
    "input_guards": "functions",
    "output_guards": "functions",
    "context_providers": "functions or ContextProviders",
    "compatible_models": "globs",
    "server_side_tools": "ServerSideTools",
}
"""The fields that are lists, and what is in them."""

_MAPPINGS = ("model_settings", "compaction", "states")

_DATA = (int, float, bytes, list, tuple, dict, set, frozenset, type(None))
"""What is neither a name nor an object that can do something."""

_OBJECTS = ("timeout", "extra_headers", "extra_body")
"""Settings that code may give as objects of its own."""


def check_spec(spec: AgentSpec) -> None:
    """Check an agent that is declared in code.

    Raises:
        UsageError: It has values that no agent can have.
    """
    fault = find_spec_fault(spec)
    if fault is not None:
        raise UsageError(f"agent {spec.name!r}: {fault}", hint="correct the AgentSpec")


def find_spec_fault(spec: AgentSpec) -> str | None:
    """Describe what is wrong with the values of a declaration; None if nothing is.

    Example:
        >>> find_spec_fault(AgentSpec("writer", max_steps=0))
        'max_steps must be a whole number, 1 or more, not 0'
    """
    return next(_faults(spec), None)


def _faults(spec: AgentSpec) -> Iterator[str]:
    for name, least in _LEAST.items():
        value: object = getattr(spec, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            yield f"{name} must be a whole number, {least} or more, not {value!r}"
    seconds = cast("object", spec.tool_timeout)
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        yield f"tool_timeout must be a number of seconds above 0, not {seconds!r}"
    for name, items in _LISTS.items():
        yield from _list_faults(name, getattr(spec, name), items)
    for name in _MAPPINGS:
        value = getattr(spec, name)
        if value is not None and not isinstance(value, Mapping):
            yield f"{name} must be a dict, not {value!r}"
    yield from _text_faults(spec)
    yield from _settings_faults(spec)
    yield from _compaction_faults(spec)
    for each in cast("tuple[object, ...]", (spec, *spec.toolsets, *spec.handoffs)):
        if isinstance(each, AgentSpec):
            yield from _input_faults(each)
    if isinstance(spec.output_type, (str, int, float, bytes)):
        yield f"output_type must be a type, or a JSON Schema as a dict, not {spec.output_type!r}"
    yield from _deps_faults(spec)


def _list_faults(name: str, value: object, items: str) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, str):
        yield f"{name} must be a list of names, not the text {value!r}"
    elif not isinstance(value, Collection) or isinstance(value, bytes | Mapping):
        yield f"{name} must be a list of {items}, not {value!r}"
    else:
        for each in cast("Collection[object]", value):
            if name == "hooks":
                if not _is_hook(each):
                    yield f"hooks is a list of {items}, and has {each!r}"
            elif isinstance(each, _DATA):
                yield f"{name} is a list of {items}, and has {each!r}"


def _is_hook(item: object) -> bool:
    pair = cast("Sequence[object]", item) if isinstance(item, tuple | list) else ()
    return len(pair) == 2 and callable(pair[1])


def _text_faults(spec: AgentSpec) -> Iterator[str]:
    instructions: object = spec.instructions
    if not isinstance(instructions, str | None) and not callable(instructions):
        yield f"instructions must be text or a function, not {instructions!r}"
    if not isinstance(cast("object", spec.description), str | None):
        yield f"description must be text, not {spec.description!r}"


def _settings_faults(spec: AgentSpec) -> Iterator[str]:
    own = {"temperature": spec.temperature, **(spec.model_settings or {})}
    settings = {name: value for name, value in own.items() if value is not None and name not in _OBJECTS}
    if settings:
        try:
            _settings_adapter().validate_python(settings)
        except ValidationError as error:
            yield f"wrong settings: {first_fault(error)}"


@cache
def _settings_adapter() -> TypeAdapter[Any]:
    from llm_do.formats.validation.fields import ModelSettings

    return TypeAdapter(ModelSettings)


def _compaction_faults(spec: AgentSpec) -> Iterator[str]:
    if spec.compaction:
        from llm_do.formats.parts.shared import CompactionFile

        try:
            CompactionFile.model_validate({key: value for key, value in spec.compaction.items() if value is not None})
        except ValidationError as error:
            yield f"wrong compaction: {first_fault(error)}"


def _input_faults(spec: AgentSpec) -> Iterator[str]:
    model = cast("object", spec.input_model)
    if model is not None and not (isinstance(model, type) and issubclass(model, BaseModel)):
        yield f"input_model must be a subclass of AgentArgs, not {model!r}"


def _deps_faults(spec: AgentSpec) -> Iterator[str]:
    kind = spec.deps_type
    if kind is None:
        return
    if not isinstance(kind, type) and get_origin(kind) is None:
        yield f"deps_type must be a type, not {kind!r}; the object itself is `deps`"
    elif spec.deps is not None and not is_of_type(spec.deps, kind):
        yield f"deps must be of type {type_name(kind)}, its deps_type, not {type(spec.deps).__name__}"

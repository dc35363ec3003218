"""Parameters of tools that have no type: the model is told nothing of them, and whatever it sends is passed on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from llm_do.diagnostics.codes import diagnostic
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.python.definitions import definition_of
from llm_do.project.flow_spec import every_agent
from llm_do.project.tool_schemas import gated_toolset
from llm_do.tools import NamedTool

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_parameters"]

_CONTEXT = ("ctx", "context")
_SHOWN = 3


def check_parameters(project: Project) -> list[Diagnostic]:
    """Warn of parameters without a type, in functions that agents list and in toolkits."""
    found: list[Diagnostic] = []
    told: set[int] = set()
    for name, function, kit, place in _functions(project):
        if id(function) in told:
            continue
        told.add(id(function))
        untyped = _untyped(function, skip=_CONTEXT[:1] if kit else ())
        if not untyped:
            continue
        definition = definition_of(function, project.root)
        at = definition.parameter(untyped[0]) if definition is not None else None
        found.append(diagnostic("LD415", _message(name, untyped), at or place, _hint(untyped[0], kit)))
    return found


def _functions(project: Project) -> Iterator[tuple[str, object, bool, Location]]:
    """Name, function, whether it is a toolkit's, and the place of what has it."""
    for spec, at in every_agent(project.registry):
        for item in spec.tools:
            registered = project.registry.get(item) if isinstance(item, str) else None
            value = registered.value if registered is not None else item
            place = (registered.place if registered is not None else at) or Location(spec.name)
            name = item if isinstance(item, str) else getattr(item, "__name__", "")
            yield name, value.function if isinstance(value, NamedTool) else value, False, place
    for item in project.registry.values():
        toolkit = gated_toolset(item.value) if item.kind == "toolset" else None
        if toolkit is not None:
            for name, value in toolkit.gated.functions.items():
                yield name, value, True, item.place or Location(item.name)


def _untyped(function: object, *, skip: tuple[str, ...]) -> list[str]:
    if not isinstance(function, FunctionType | MethodType):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is inspect.Parameter.empty and parameter.kind in named and name not in skip
    ]


def _message(name: str, untyped: list[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in untyped[:_SHOWN])
    more = f" and {len(untyped) - _SHOWN} more" if len(untyped) > _SHOWN else ""
    noun = "parameter" if len(untyped) == 1 else "parameters"
    return f"`{name}` gives its {noun} {shown}{more} no type, so any JSON is taken, whatever the model sends"


def _hint(name: str, kit: bool) -> str:
    if name in _CONTEXT and not kit:
        return f"for the context of the call write `{name}: RunContext[CallContext]`, else a type such as `{name}: str`"
    return f"write its type, such as `{name}: str`"

"""What a model should read about a function and doesn't: the types of its parameters, and what it is for.

Without a type, a parameter's schema is empty, so any value that the model sends is passed on.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from llm_do.diagnostics.codes.tools import undescribed_tool, untyped_parameters
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.python.definitions import definition_of
from llm_do.project.flow_spec import every_agent
from llm_do.project.gates import GatedToolset
from llm_do.tools import NamedTool, options_of

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_descriptions", "check_parameters"]

_CONTEXT = ("ctx", "context")


def check_parameters(project: Project) -> list[Diagnostic]:
    """Warn about parameters without a type, in functions that agents list and in toolkits."""
    found: list[Diagnostic] = []
    reported: set[int] = set()
    for name, function, kit, place in _functions(project):
        if id(function) in reported:
            continue
        reported.add(id(function))
        untyped = _untyped(function, skip=_CONTEXT[:1] if kit else ())
        if not untyped:
            continue
        definition = definition_of(function, project.root)
        at = definition.parameter(untyped[0]) if definition is not None else None
        problem = untyped_parameters(name, untyped, may_be_context=untyped[0] in _CONTEXT and not kit)
        found.append(problem.at(at or place))
    return found


def check_descriptions(project: Project) -> list[Diagnostic]:
    """Warn about functions that agents list, and tools of toolkits, without a description."""
    found: list[Diagnostic] = []
    reported: set[int] = set()
    for name, function, _, place in _functions(project):
        if not isinstance(function, FunctionType | MethodType) or id(function) in reported:
            continue
        reported.add(id(function))
        if not (function.__doc__ or "").strip() and not options_of(function).description:
            definition = definition_of(function, project.root)
            found.append(undescribed_tool(name).at(definition.place if definition is not None else place))
    return found


def _functions(project: Project) -> Iterator[tuple[str, object, bool, Location]]:
    """Yield each function with its name, whether it belongs to a toolkit, and the place of its owner."""
    for spec, at in every_agent(project.registry):
        for item in spec.tools:
            registered = project.registry.get(item) if isinstance(item, str) else None
            value = registered.value if registered is not None else item
            place = (registered.place if registered is not None else at) or Location(spec.name)
            name = item if isinstance(item, str) else getattr(item, "__name__", "")
            yield name, value.function if isinstance(value, NamedTool) else value, False, place
    for item in project.registry.values():
        toolkit: object = item.value
        if item.kind == "toolset" and isinstance(toolkit, GatedToolset):
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

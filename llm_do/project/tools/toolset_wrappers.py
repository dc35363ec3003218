"""Looks through PydanticAI's toolset wrappers without running anything, to find the tools they show.

`llm_do.project.tools.tool_schemas` finds the tools of a toolset without wrappers. If there is a toolset at all, the
project's own code has already imported PydanticAI.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.project.tools.tool_schemas import fixed_tools

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

__all__ = ["Level", "ShownTool", "find_shown_tools", "wrapper_levels"]

Level: TypeAlias = "tuple[AbstractToolset[Any], str]"
"""A toolset, and a tool's name in it."""

_RUN_METHODS = ("for_run", "for_run_step")


@frozen
class ShownTool:
    """A tool as a wrapped toolset shows it.

    Args:
        tool: The innermost tool.
        definition: The definition that the model sees.
        levels: The toolsets it passes through, outermost first.
        conditional: Whether it may be hidden at run time.
        prepared: Whether a function of the project's may change its definition.
    """

    tool: PydanticTool[Any]
    definition: ToolDefinition
    levels: tuple[Level, ...]
    conditional: bool = False
    prepared: bool = False


def find_shown_tools(toolset: object) -> list[ShownTool] | None:
    """Find the tools that a toolset is known to have; None if they are only known at run time.

    Example:
        >>> from pydantic_ai import FunctionToolset
        >>> def find(part: str) -> str:
        ...     return part
        >>> parts = FunctionToolset([find]).prefixed("parts").filtered(lambda ctx, tool: True)
        >>> [(shown.definition.name, shown.conditional) for shown in find_shown_tools(parts)]
        [('parts_find', True)]
    """
    if "pydantic_ai" not in sys.modules:
        return None
    from pydantic_ai.toolsets import CombinedToolset, FunctionToolset, WrapperToolset

    outermost = cast("AbstractToolset[Any]", toolset)
    fixed = fixed_tools(toolset)
    if fixed is not None:
        return [ShownTool(tool, tool.tool_def, ((outermost, tool.name),)) for tool in fixed]
    if isinstance(toolset, FunctionToolset) and _inherits(outermost, FunctionToolset, "get_tools", *_RUN_METHODS):
        own = cast("FunctionToolset[Any]", toolset)
        return [_of_function(own, tool) for tool in own.tools.values()]
    if isinstance(toolset, CombinedToolset) and _inherits(outermost, CombinedToolset, "get_tools", *_RUN_METHODS):
        parts = [find_shown_tools(part) for part in cast("CombinedToolset[Any]", toolset).toolsets]
        if any(part is None for part in parts):
            return None
        return [_outside(shown, outermost) for part in parts for shown in part or ()]
    if isinstance(toolset, WrapperToolset) and _inherits(outermost, WrapperToolset, *_RUN_METHODS):
        wrapper = cast("WrapperToolset[Any]", toolset)
        inner = find_shown_tools(wrapper.wrapped)
        return None if inner is None else _wrap(wrapper, inner)
    return None


def wrapper_levels(toolset: AbstractToolset[Any], name: str, owner: AbstractToolset[Any] | None = None) -> list[Level]:
    """List the toolsets that a call passes through, outermost first, with the tool's name in each."""
    from pydantic_ai.toolsets import WrapperToolset

    found: list[Level] = []
    current = toolset
    while True:
        found.append((current, name))
        if isinstance(current, WrapperToolset):
            name, current = _inside(current, name), current.wrapped
        elif owner is not None and all(known is not owner for known, _ in found):
            current = owner
        else:
            return found


def _inherits(toolset: object, kind: type, *names: str) -> bool:
    """Check that a toolset's class doesn't override the named methods of its base."""
    return all(getattr(type(toolset), name) is getattr(kind, name) for name in names)


def _of_function(owner: AbstractToolset[Any], tool: PydanticTool[Any]) -> ShownTool:
    prepared = tool.prepare is not None
    return ShownTool(tool, tool.tool_def, ((owner, tool.name),), prepared or tool.defer_loading, prepared)


def _outside(shown: ShownTool, toolset: AbstractToolset[Any], name: str | None = None, **changes: Any) -> ShownTool:
    """Add an outer level to a tool."""
    name = name or shown.definition.name
    definition = shown.definition if name == shown.definition.name else replace(shown.definition, name=name)
    return replace(shown, **{"definition": definition, **changes}, levels=((toolset, name), *shown.levels))


def _wrap(wrapper: WrapperToolset[Any], inner: Sequence[ShownTool]) -> list[ShownTool] | None:
    """Return the tools as a wrapper shows them; None for a wrapper with its own code."""
    from pydantic_ai import toolsets

    maker = next(kind for kind in type(wrapper).__mro__ if "get_tools" in vars(kind))
    if maker is toolsets.WrapperToolset:
        return [_outside(shown, wrapper) for shown in inner]
    if maker is toolsets.PrefixedToolset:
        prefix = cast("toolsets.PrefixedToolset[Any]", wrapper).prefix
        return [_outside(shown, wrapper, f"{prefix}_{shown.definition.name}") for shown in inner]
    if maker is toolsets.RenamedToolset:
        names = {old: new for new, old in cast("toolsets.RenamedToolset[Any]", wrapper).name_map.items()}
        return [_outside(shown, wrapper, names.get(shown.definition.name)) for shown in inner]
    if maker is toolsets.FilteredToolset:
        return [_outside(shown, wrapper, conditional=True) for shown in inner]
    if maker is not toolsets.PreparedToolset:
        return None
    if isinstance(wrapper, toolsets.SetMetadataToolset):
        return [_outside(shown, wrapper, definition=_with_metadata(shown, wrapper.metadata)) for shown in inner]
    if isinstance(wrapper, toolsets.IncludeReturnSchemasToolset):
        return [_outside(shown, wrapper) for shown in inner]
    if isinstance(wrapper, toolsets.DeferredLoadingToolset):
        hidden = wrapper.tool_names
        return [
            _outside(shown, wrapper, conditional=shown.conditional or hidden is None or shown.definition.name in hidden)
            for shown in inner
        ]
    return [_outside(shown, wrapper, conditional=True, prepared=True) for shown in inner]


def _with_metadata(shown: ShownTool, metadata: dict[str, Any]) -> ToolDefinition:
    return replace(shown.definition, metadata={**(shown.definition.metadata or {}), **metadata})


def _inside(wrapper: WrapperToolset[Any], name: str) -> str:
    """Return a tool's name one level further in, as a call looks it up."""
    from pydantic_ai.toolsets import PrefixedToolset, RenamedToolset

    if isinstance(wrapper, PrefixedToolset):
        return name.removeprefix(f"{wrapper.prefix}_")
    if isinstance(wrapper, RenamedToolset):
        return wrapper.name_map.get(name, name)
    return name

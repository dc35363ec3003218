"""PydanticAI's wrappers of toolsets, looked through without running anything: names, levels, and tools they show.

Which tools a toolset without wrappers has is `llm_do.project.tool_schemas`' business. PydanticAI is imported by the
project's own code where there is a toolset at all.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.project.tool_schemas import fixed_tools

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

__all__ = ["Level", "ShownTool", "find_shown_tools", "wrapper_levels"]

Level: TypeAlias = "tuple[AbstractToolset[Any], str]"
"""A toolset, and what a tool is called there."""


@frozen
class ShownTool:
    """A tool as a wrapped toolset shows it.

    Args:
        tool: The function's tool, innermost.
        definition: What is shown of it.
        levels: The toolsets it comes through, the outermost first.
        conditional: Whether it is shown is decided at run time.
        prepared: A function of the project's may change what is shown of it.
    """

    tool: PydanticTool[Any]
    definition: ToolDefinition
    levels: tuple[Level, ...]
    conditional: bool = False
    prepared: bool = False


def find_shown_tools(toolset: object) -> list[ShownTool] | None:
    """The tools that a toolset is known to have, None where only a run can tell.

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

    given = cast("AbstractToolset[Any]", toolset)
    fixed = fixed_tools(toolset)
    if fixed is not None:
        return [ShownTool(tool, tool.tool_def, ((given, tool.name),)) for tool in fixed]
    if isinstance(toolset, FunctionToolset) and _same(given, FunctionToolset, "get_tools", "for_run", "for_run_step"):
        own = cast("FunctionToolset[Any]", toolset)
        return [_of_function(own, tool) for tool in own.tools.values()]
    if isinstance(toolset, CombinedToolset) and _same(given, CombinedToolset, "get_tools", "for_run", "for_run_step"):
        parts = [find_shown_tools(part) for part in cast("CombinedToolset[Any]", toolset).toolsets]
        if any(part is None for part in parts):
            return None
        return [_outside(shown, given) for part in parts for shown in part or ()]
    if isinstance(toolset, WrapperToolset) and _same(given, WrapperToolset, "for_run", "for_run_step"):
        wrapper = cast("WrapperToolset[Any]", toolset)
        inner = find_shown_tools(wrapper.wrapped)
        return None if inner is None else _wrapped(wrapper, inner)
    return None


def wrapper_levels(toolset: AbstractToolset[Any], name: str, owner: AbstractToolset[Any] | None = None) -> list[Level]:
    """The toolsets that a call comes through, the outermost first, with the tool's name at each."""
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


def _same(toolset: object, kind: type, *names: str) -> bool:
    """Whether a toolset's class leaves methods of its base as they are."""
    return all(getattr(type(toolset), name) is getattr(kind, name) for name in names)


def _of_function(owner: AbstractToolset[Any], tool: PydanticTool[Any]) -> ShownTool:
    prepared = tool.prepare is not None
    return ShownTool(tool, tool.tool_def, ((owner, tool.name),), prepared or tool.defer_loading, prepared)


def _outside(shown: ShownTool, toolset: AbstractToolset[Any], name: str | None = None, **changes: Any) -> ShownTool:
    """A tool one level further out."""
    name = name or shown.definition.name
    definition = shown.definition if name == shown.definition.name else replace(shown.definition, name=name)
    return replace(shown, **{"definition": definition, **changes}, levels=((toolset, name), *shown.levels))


def _wrapped(wrapper: WrapperToolset[Any], inner: Sequence[ShownTool]) -> list[ShownTool] | None:
    """What a wrapper shows of the tools inside; None for one with code of its own."""
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
        return [_outside(shown, wrapper, definition=_told(shown, wrapper.metadata)) for shown in inner]
    if isinstance(wrapper, toolsets.IncludeReturnSchemasToolset):
        return [_outside(shown, wrapper) for shown in inner]
    if isinstance(wrapper, toolsets.DeferredLoadingToolset):
        hidden = wrapper.tool_names
        return [
            _outside(shown, wrapper, conditional=shown.conditional or hidden is None or shown.definition.name in hidden)
            for shown in inner
        ]
    return [_outside(shown, wrapper, conditional=True, prepared=True) for shown in inner]


def _told(shown: ShownTool, metadata: dict[str, Any]) -> ToolDefinition:
    return replace(shown.definition, metadata={**(shown.definition.metadata or {}), **metadata})


def _inside(wrapper: WrapperToolset[Any], name: str) -> str:
    """What a tool is called one level further in, as a call finds it."""
    from pydantic_ai.toolsets import PrefixedToolset, RenamedToolset

    if isinstance(wrapper, PrefixedToolset):
        return name.removeprefix(f"{wrapper.prefix}_")
    if isinstance(wrapper, RenamedToolset):
        return wrapper.name_map.get(name, name)
    return name

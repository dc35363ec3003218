"""From functions and toolsets of any origin to tools that the runtime knows: each built once, with its traits.

Schemas are made in `llm_do.project.tools`; nothing here runs a tool.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.policy.values import Verdict
from llm_do.project.tools import APPROVAL_KEY, UNCHECKED, approval_config, kept, make_schema, static_approval
from llm_do.runtime.traits import TRAITS_KEY, ToolTraits
from llm_do.tools import Tool

__all__ = [
    "SelectedToolset",
    "StampedToolset",
    "approval_config",
    "kept",
    "make_tool",
    "set_approval_config",
    "stamped_tool",
]


def make_tool(item: Callable[..., Any] | PydanticTool[Any] | Tool, name: str | None = None) -> PydanticTool[Any]:
    """Make the PydanticAI tool of a function or a tool object.

    Args:
        item: A function, a PydanticAI `Tool`, or an object of our own `Tool`.
        name: The name it is registered under; None takes its own.

    Returns:
        A new tool, its traits in its metadata.
    """
    schema = make_schema(item, name)
    made, options = schema.tool, schema.options
    traits = ToolTraits(
        kind="function",
        tool=made.name,
        approval=options.approval,
        primary=options.primary,
        timeout=options.timeout,
        unchecked=schema.unchecked,
    )
    made.metadata = {**schema.metadata, TRAITS_KEY: traits}
    return made


def set_approval_config(toolset: AbstractToolset[Any], config: Mapping[str, Mapping[str, Any]]) -> None:
    """Say for tools of a toolset whether they are pre-approved: `{"tool": {"pre_approved": True}}`."""
    object.__setattr__(toolset, APPROVAL_KEY, {name: dict(entry) for name, entry in config.items()})


@dataclass
class StampedToolset(WrapperToolset[Any]):
    """Gives each tool of a toolset the traits the runtime needs, unless it brings its own."""

    name: str
    _stamped: dict[str, tuple[ToolDefinition, ToolsetTool[Any]]] = field(
        default_factory=dict[str, tuple[ToolDefinition, "ToolsetTool[Any]"]], init=False, repr=False, compare=False
    )

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The wrapped toolset's tools, with traits."""
        tools = await self.wrapped.get_tools(ctx)
        return {name: self._stamp(name, tool) for name, tool in tools.items()}

    def _stamp(self, name: str, tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        metadata = tool.tool_def.metadata
        if metadata is not None and TRAITS_KEY in metadata:
            return tool
        known = self._stamped.get(name)
        if known is not None and known[0] is tool.tool_def:
            return replace(known[1], toolset=tool.toolset)
        traits = _traits_for(self.name, name, tool.toolset, tool.tool_def, tool.args_validator)
        definition = replace(tool.tool_def, metadata={**(metadata or {}), TRAITS_KEY: traits})
        if definition.kind == "unapproved":
            definition = replace(definition, kind="function")
        stamped = replace(tool, tool_def=definition)
        self._stamped[name] = (tool.tool_def, stamped)
        return stamped


def stamped_tool(toolset_name: str, owner: AbstractToolset[Any], tool: PydanticTool[Any]) -> PydanticTool[Any]:
    """A copy of a function tool of `owner` with its traits, unless it brings its own."""
    if tool.metadata is not None and TRAITS_KEY in tool.metadata:
        return tool
    made: PydanticTool[Any] = copy.copy(tool)
    traits = _traits_for(toolset_name, tool.name, owner, tool.tool_def, tool.function_schema.validator)
    made.requires_approval = False
    made.metadata = {**(tool.metadata or {}), TRAITS_KEY: traits}
    return made


def _traits_for(
    toolset_name: str, tool_name: str, owner: Any, tool_def: ToolDefinition, validator: object
) -> ToolTraits:
    asks: Any = getattr(owner, "needs_approval", None)
    describe: Any = getattr(owner, "get_approval_description", None)
    diff: Any = getattr(owner, "diff", None)
    return ToolTraits(
        kind="toolset",
        toolset=toolset_name,
        tool=tool_name,
        approval=static_approval(owner, tool_def),
        verdict=(lambda call: _verdict(asks(call.tool, dict(call.args)))) if callable(asks) else None,
        primary=(tool_def.metadata or {}).get("primary"),
        describe=(lambda args: str(describe(tool_name, dict(args)))) if callable(describe) else None,
        diff=(lambda args: _text(diff(tool_name, dict(args)))) if callable(diff) else None,
        unchecked=getattr(validator, "title", None) in UNCHECKED,
    )


def _text(said: object) -> str | None:
    return None if said is None else str(said)


def _verdict(said: object) -> Verdict | None:
    """What a toolset's `needs_approval` said: a verdict, an effect, or whether to ask."""
    if said is None or isinstance(said, Verdict):
        return said
    if said in ("allow", "ask", "deny"):
        return Verdict(said)  # pyright: ignore[reportArgumentType]
    return Verdict("ask" if said else "allow")


@dataclass
class SelectedToolset(WrapperToolset[Any]):
    """The tools of a toolset whose own names the globs keep."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The wrapped toolset's tools that are kept."""
        return {name: tool for name, tool in (await self.wrapped.get_tools(ctx)).items() if self.keeps(name)}

    def keeps(self, name: str) -> bool:
        """Whether a tool of that name is kept."""
        return kept(name, self.include, self.exclude)

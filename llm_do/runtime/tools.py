"""From functions and toolsets of any origin to tools that the runtime knows: each built once, with its traits.

PydanticAI makes the schemas; nothing here runs a tool.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.policy.values import Effect, Verdict
from llm_do.runtime.traits import TRAITS_KEY, ToolTraits
from llm_do.tools import Tool, ToolOptions

__all__ = [
    "SelectedToolset",
    "StampedToolset",
    "approval_config",
    "kept",
    "make_tool",
    "set_approval_config",
    "stamped_tool",
]

UNCHECKED = frozenset({"any", "dict[str,any]"})
"""Titles of validators that check no more than "some JSON": the tool's JSON Schema has to be checked besides."""

_CONFIG = "__llm_do_approval__"

_built: WeakKeyDictionary[Any, PydanticTool[Any]] = WeakKeyDictionary()


def make_tool(item: Callable[..., Any] | PydanticTool[Any] | Tool, name: str | None = None) -> PydanticTool[Any]:
    """The PydanticAI tool of a function or a tool object, built once however often it is asked for.

    Args:
        item: A function, a PydanticAI `Tool`, or an object of our own `Tool`.
        name: The name it is registered under; None takes its own.

    Returns:
        The tool, its traits in its metadata.
    """
    try:
        known = _built.get(item)
    except TypeError:
        known = None
    if known is None or (name is not None and known.name != name):
        known = _build_tool(item, name)
        try:
            _built[item] = known
        except TypeError:
            return known
    return known


def _build_tool(item: Callable[..., Any] | PydanticTool[Any] | Tool, name: str | None) -> PydanticTool[Any]:
    if isinstance(item, PydanticTool):
        made: PydanticTool[Any] = copy.copy(cast("PydanticTool[Any]", item))
        metadata = dict(made.metadata or {})
        approval: Effect | None = metadata.get("approval") or ("ask" if made.requires_approval else None)
        options = ToolOptions(approval=approval, primary=metadata.get("primary"))
        # The runtime asks inline; PydanticAI must not end the run to defer the call.
        made.requires_approval = False
        unchecked = made.function_schema.validator.title in UNCHECKED  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(item, Tool):
        metadata = {}
        options = ToolOptions(approval=item.approval, primary=item.primary, timeout=item.timeout)
        made = PydanticTool.from_schema(item.execute, item.name, item.description, dict(item.parameters))
        unchecked = True
    else:
        metadata = {}
        options = getattr(item, "__llm_do_tool__", None) or ToolOptions()
        made = PydanticTool(item, name=options.name or name, description=options.description)
        if options.examples:
            shown = "\n".join(json.dumps(dict(example), ensure_ascii=False) for example in options.examples)
            made.description = f"{made.description or ''}\n\nExamples:\n{shown}".strip()
        unchecked = False
    if name is not None:
        made.name = name
    traits = ToolTraits(
        kind="function",
        tool=made.name,
        approval=options.approval,
        primary=options.primary,
        timeout=options.timeout,
        unchecked=unchecked,
    )
    made.metadata = {**metadata, TRAITS_KEY: traits}
    return made


def set_approval_config(toolset: AbstractToolset[Any], config: Mapping[str, Mapping[str, Any]]) -> None:
    """Say for tools of a toolset whether they are pre-approved: `{"tool": {"pre_approved": True}}`."""
    object.__setattr__(toolset, _CONFIG, {name: dict(entry) for name, entry in config.items()})


def approval_config(toolset: AbstractToolset[Any]) -> Mapping[str, Mapping[str, Any]]:
    """What was said with `set_approval_config`; empty when nothing was."""
    return getattr(toolset, _CONFIG, {})


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
    config = approval_config(owner).get(tool_name, {})
    metadata = tool_def.metadata or {}
    approval: Effect | None = metadata.get("approval")
    if approval is None and tool_def.kind == "unapproved":
        approval = "ask"
    if config.get("pre_approved"):
        approval = "allow"
    elif config.get("blocked"):
        approval = "deny"
    elif config.get("approval_required"):
        approval = "ask"
    asks: Any = getattr(owner, "needs_approval", None)
    describe: Any = getattr(owner, "get_approval_description", None)
    diff: Any = getattr(owner, "diff", None)
    return ToolTraits(
        kind="toolset",
        toolset=toolset_name,
        tool=tool_name,
        approval=approval,
        verdict=(lambda call: _verdict(asks(call.tool, dict(call.args)))) if callable(asks) else None,
        primary=metadata.get("primary"),
        describe=(lambda args: describe(tool_name, dict(args))) if callable(describe) else None,
        diff=(lambda args: diff(tool_name, dict(args))) if callable(diff) else None,
        unchecked=getattr(validator, "title", None) in UNCHECKED,
    )


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


def kept(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether globs keep a tool: one of `include` matches, where there are any, and none of `exclude`.

    Example:
        >>> kept("search_issues", ["search_*"], []), kept("search_code", [], ["*_code"])
        (True, False)
    """
    if include and not any(fnmatchcase(name, glob) for glob in include):
        return False
    return not any(fnmatchcase(name, glob) for glob in exclude)

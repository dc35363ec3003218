"""Collects all tools of an agent: functions, the tools of its toolsets, agents and flows that it calls, handoffs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.errors import RunError
from llm_do.project.agent_spec import AgentSpec, ToolsetRef, takes_deps
from llm_do.project.faults import building
from llm_do.project.gates import GatedToolset
from llm_do.project.tools.tool_schemas import fixed_tools, is_included
from llm_do.runtime.agents.listed_items import ListedItems, item_name
from llm_do.runtime.call.own_deps import gets_call_context, origin_of, tool_in_call, toolset_in_call
from llm_do.runtime.context.resources import ServerToolset
from llm_do.runtime.tools.handoffs import transfer_tools
from llm_do.runtime.tools.stamped_tools import (
    ListedTools,
    SelectedToolset,
    StampedToolset,
    add_prefix,
    stamped_tool,
)
from llm_do.runtime.tools.toolbox import FixedTool, Toolbox, check_tool_name, function_tool, name_clash
from llm_do.runtime.tools.traits import traits_of

if TYPE_CHECKING:
    from llm_do.machines.tool_gate import ToolGate

__all__ = ["CollectedTools"]


class CollectedTools:
    """All tools of an agent.

    Args:
        spec: The agent.
        items: What its names stand for.
        root: The project's folder.

    Attributes:
        names: The names of its toolsets.
        machines: A gate of each of its state machines.
        listed: What is known of the tools that are listed at every step.
    """

    def __init__(self, spec: AgentSpec, items: ListedItems, root: Path) -> None:
        self.names: list[str] = []
        self.machines: dict[str, ToolGate] = {}
        self.listed = ListedTools()
        self._spec = spec
        self._items = items
        self._root = root
        self._takes_deps = takes_deps(spec)
        self._fixed: dict[str, FixedTool] = {}
        self._live: list[AbstractToolset[Any]] = []
        self._instructing: list[AbstractToolset[Any]] = []
        functions: FunctionToolset[Any] = FunctionToolset(id="tools")
        for item in spec.tools:
            called = items.callable_tool(item)
            self._add(called if called is not None else function_tool(items.tool_of(spec, item), functions))
        for item in spec.toolsets:
            with building(spec.name, root, f"the toolset {item_name(item)!r}"):
                self._add_toolset(item)
        for transfer in transfer_tools(spec, items.registry):
            self._add(transfer, ours=True)

    def toolbox(self) -> Toolbox:
        """The tools as one toolset."""
        return Toolbox(self._spec.name, self._fixed, self._live, self._instructing)

    def _add(self, tool: FixedTool, *, ours: bool = False) -> None:
        tool, name = tool_in_call(tool, always=ours) if self._takes_deps else tool, tool.tool_def.name
        if name in self._fixed:
            raise name_clash(self._spec.name, name, self._fixed[name].toolset, tool.toolset)
        check_tool_name(self._spec.name, name, tool.toolset)
        self._fixed[name] = tool

    def _add_toolset(self, item: Any) -> None:
        spec = self._spec
        ref, toolset = self._items.toolset_of(spec, item)
        made_of = origin_of(item, toolset, self._items.registry, spec.name)
        self.names.append(ref.name)
        if isinstance(toolset, FixedTool):
            if is_included(ref.name, ref.include, ref.exclude):
                self._add(_renamed(toolset, ref.prefix))
            return
        tools = self._gated(ref, toolset) or fixed_tools(toolset)
        if tools is None:
            if isinstance(toolset, ServerToolset):
                toolset = toolset.with_prefix(ref.prefix)
                ref = replace(ref, prefix=toolset.prefix)
                self.listed.add_remembered(toolset.listed_definitions(), ref)
            self.listed.add(toolset, ref)
            toolset = toolset_in_call(toolset, made_of) if self._takes_deps else toolset
            self._live.append(_selected(StampedToolset(toolset, ref.name, self._root), ref))
            return
        self._instructing.append(toolset)
        for tool in tools:
            if is_included(tool.name, ref.include, ref.exclude):
                fixed = _renamed(function_tool(stamped_tool(ref.name, toolset, tool), toolset), ref.prefix)
                self._add(fixed, ours=gets_call_context(made_of))

    def _gated(self, ref: ToolsetRef, toolset: AbstractToolset[Any]) -> list[PydanticTool[Any]]:
        """Return the tools of a toolkit; empty for other toolsets."""
        if not isinstance(toolset, GatedToolset):
            return []
        spec, key = self._spec, ref.prefix or ref.name
        hides = None if spec.gate is None else spec.gate == "hide"
        tools = list(toolset.gated.tools(ref.name, ref.prefix, hides=hides))
        if key in self.machines or key == spec.name:
            raise RunError(
                f"agent {spec.name!r} has two state machines called {key!r}",
                hint="Give one of the toolkits another `prefix:`.",
                agent_path=spec.name,
            )
        for tool in tools:
            traits = traits_of(tool.metadata)
            if traits is not None and traits.gate is not None:
                self.machines[key] = traits.gate
        return tools


def _renamed(tool: FixedTool, prefix: str | None) -> FixedTool:
    return replace(tool, tool_def=add_prefix(tool.tool_def, prefix)) if prefix else tool


def _selected(toolset: AbstractToolset[Any], ref: ToolsetRef) -> AbstractToolset[Any]:
    if ref.include or ref.exclude:
        toolset = SelectedToolset(toolset, ref.include, ref.exclude)
    return toolset.prefixed(ref.prefix) if ref.prefix else toolset

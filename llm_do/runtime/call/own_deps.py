"""What tools get as `ctx.deps`: the dependencies that their agent was given, or the `CallContext`.

An agent with dependencies runs with them, so that everything that PydanticAI calls has them. What belongs to llm-do,
and functions annotated with `RunContext[CallContext]`, get the `CallContext` all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import RunError
from llm_do.project.agent_spec import AgentSpec, ToolsetRef, is_of_type, type_name
from llm_do.project.functions import context_deps
from llm_do.project.gates import GatedToolset
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.tools.published_toolsets import named_toolset
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.words import with_article

if TYPE_CHECKING:
    from llm_do.project.registry import Registry
    from llm_do.runtime.tools.toolbox import FixedTool

__all__ = [
    "agent_deps",
    "call_deps",
    "deps_fault",
    "function_deps",
    "gets_call_context",
    "in_call",
    "origin_of",
    "tool_in_call",
    "toolset_in_call",
]


def agent_deps(spec: AgentSpec, ctx: CallContext) -> tuple[object] | None:
    """Return the dependencies that an agent is called with, in a tuple; None for the `CallContext`.

    Raises:
        RunError: It needs some, and there are none of their type.
    """
    if fault := deps_fault(spec, ctx.run.deps):
        raise RunError(fault[0], hint=fault[1], agent_path=ctx.path)
    given = ctx.run.deps
    if spec.deps_type is not None and given is not None and is_of_type(given, spec.deps_type):
        return (given,)
    return None if spec.deps is None and not _is_optional(spec.deps_type) else (spec.deps,)


def _is_optional(kind: Any) -> bool:
    return NoneType in get_args(kind)


def deps_fault(spec: AgentSpec, given: object) -> tuple[str, str] | None:
    """Say that an agent has no dependencies of the type that it needs, and what to do; None if it needs no others.

    Args:
        spec: The agent.
        given: The dependencies that its run was given.
    """
    kind = spec.deps_type
    if kind is None or spec.deps is not None or _is_optional(kind) or (given is not None and is_of_type(given, kind)):
        return None
    name = type_name(kind)
    others = "there are none" if given is None else f"the run was given {with_article(type_name(type(given)))}"
    return (
        f"agent {spec.name!r} needs dependencies of type {name}, and {others}",
        f"Pass {with_article(name)} to the run as `deps=`, or give the agent its own: AgentSpec(..., deps=...). The "
        "command line, servers and workers can only run agents that have their own.",
    )


def call_deps(ctx: CallContext) -> object:
    """Return what tools get as `ctx.deps` that code calls by name: what its caller has."""
    return ctx if ctx.deps is None else ctx.deps


def function_deps(function: object, ctx: CallContext) -> object:
    """Return what a function gets as `ctx.deps` that code calls by name."""
    return ctx if context_deps(function) == "call" else call_deps(ctx)


def in_call(ctx: RunContext[Any]) -> RunContext[Any]:
    """Return a tool's context with the `CallContext` as its `deps`."""
    return ctx if isinstance(ctx.deps, CallContext) else replace(ctx, deps=current_call())


def tool_in_call(tool: FixedTool, *, always: bool = False) -> FixedTool:
    """Return a tool that gets the `CallContext`, if its function is annotated with it, or always."""
    traits = traits_of(tool.tool_def.metadata)
    if not always and context_deps(traits.function if traits is not None else None) != "call":
        return tool
    call = tool.call

    async def called(args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        return await call(args, in_call(ctx))

    return replace(tool, call=called)


def gets_call_context(item: object) -> bool:
    """Check whether a toolset, or the factory of one, gets the `CallContext` whatever dependencies its agent has."""
    if isinstance(item, BuiltinToolset | GatedToolset):
        return True
    if isinstance(item, AbstractToolset):
        return type(cast("object", item)).__module__.partition(".")[0] == __name__.partition(".")[0]
    return callable(item) and context_deps(item) == "call"


def origin_of(item: object, toolset: object, registry: Registry, agent: str) -> object:
    """Return what a toolset of an agent was made of: a built-in, a factory, or itself.

    Args:
        item: The entry of the agent's `toolsets`.
        toolset: The toolset.
        registry: Every name that the entry may be.
        agent: The agent's name.
    """
    if isinstance(item, ToolsetRef):
        item = item.value or item.name
    if isinstance(item, str):
        found = registry.get(item)
        item = found.value if found is not None else named_toolset(item, registry, agent)
    return toolset if isinstance(item, AbstractToolset) else item


def toolset_in_call(toolset: AbstractToolset[Any], item: object) -> AbstractToolset[Any]:
    """Return a toolset in which those toolsets and functions get the `CallContext` that should.

    Args:
        toolset: The toolset.
        item: What it was made of: a built-in, a factory, or itself.
    """
    if gets_call_context(item):
        return _InCall(toolset)
    if item is not toolset:  # a factory for other dependencies
        return toolset

    def choose(leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        if gets_call_context(leaf):
            return _InCall(leaf)
        return _FunctionsInCall(leaf) if isinstance(leaf, FunctionToolset) else leaf

    return toolset.visit_and_replace(choose)


@dataclass
class _InCall(WrapperToolset[Any]):
    """A toolset that gets the `CallContext`."""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return await super().for_run(in_call(ctx))

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return await super().for_run_step(in_call(ctx))

    async def get_instructions(self, ctx: RunContext[Any]) -> Any:
        return await self.wrapped.get_instructions(in_call(ctx))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return await self.wrapped.get_tools(in_call(ctx))

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        return await self.wrapped.call_tool(name, tool_args, in_call(ctx), tool)


@dataclass
class _FunctionsInCall(WrapperToolset[Any]):
    """Functions, of which those get the `CallContext` that are annotated with it."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        found = cast("FunctionToolset[Any]", self.wrapped).tools.get(name)
        function: Callable[..., Any] | None = found.function_schema.function if found is not None else None
        ctx = in_call(ctx) if context_deps(function) == "call" else ctx
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)

"""Calls from Python of tools that belong to a toolset: the declared toolsets are searched for the tool's name.

The tools of a project's functions are called in `llm_do.runtime.call.function_call`; a model's calls never come here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset

from llm_do.concurrency.worker_threads import WORKERS
from llm_do.errors import RunError
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.gates import GatedToolset
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin, known_tools
from llm_do.project.tools.toolset_wrappers import find_shown_tools
from llm_do.runtime.call.function_call import CallArguments, checked_arguments, run_context
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.iterated_results import UNLIMITED_ITEMS, collect_items
from llm_do.runtime.tools.traits import traits_of

if TYPE_CHECKING:
    from pydantic_ai.toolsets.abstract import ToolsetTool

__all__ = ["ToolsetCall", "find_toolset_call", "toolset_tool_names"]


@dataclass(frozen=True, slots=True)
class ToolsetCall:
    """A tool of an open toolset, with validated arguments.

    Args:
        toolset: The toolset.
        tool: The tool.
        args: The arguments.
        input: The arguments as events show them.
    """

    toolset: AbstractToolset[Any]
    tool: ToolsetTool[Any]
    args: dict[str, Any]
    input: CallArguments

    @property
    def repeatable(self) -> bool:
        """Whether it may simply run again if it was in flight when a run was stopped."""
        traits = traits_of(self.tool.tool_def.metadata)
        return traits is not None and traits.facts.repeatable

    async def run(self, child: CallContext) -> Any:
        """Run the tool in its call's context."""
        name = self.tool.tool_def.name
        with Agent.using_thread_executor(WORKERS):
            value = await self.toolset.call_tool(name, self.args, run_context(child, name), self.tool)
        return await collect_items(value, UNLIMITED_ITEMS)


@asynccontextmanager
async def find_toolset_call(ctx: CallContext, name: str, value: object) -> AsyncGenerator[ToolsetCall | None]:
    """Find the tool that a name means in the declared toolsets, `TOOLSET::TOOL` in one of them; None if none has it.

    A toolset whose tools are known has it for certain; others are opened to look.
    """
    home, _, tool = name.rpartition("::")
    known, unknown = _candidates(ctx, home, tool)
    if len(known) > 1:
        both = " and ".join(f"`{each}`" for each in known)
        raise RunError(
            f"{tool!r} is a tool of the toolsets {both}",
            hint=f"Say which: {known[0]}::{tool}.",
            agent_path=ctx.path,
        )
    for each in known or unknown:
        toolset = ctx.runtime.builder.toolset(each)
        if toolset is None:
            continue
        run = run_context(ctx, tool)
        opened = await toolset.for_run(run)
        async with opened:
            found = (await opened.get_tools(run)).get(tool)
            if found is None:
                continue
            definition = found.tool_def
            schema = definition.parameters_json_schema
            args = checked_arguments(ctx, tool, schema, found.args_validator, definition.metadata, value)
            yield ToolsetCall(opened, found, args, CallArguments.model_validate(args))
            return
    yield None


def toolset_tool_names(ctx: CallContext) -> list[str]:
    """The names of the tools of declared toolsets, as far as they are known."""
    return [name for item in _toolsets(ctx).values() for name in _tool_names(item) or ()]


def _toolsets(ctx: CallContext) -> dict[str, object]:
    """The declared toolsets by name: the project's, and the built-in ones that the calling agent lists."""
    found = {name: item.value for name, item in ctx.runtime.registry.items() if item.kind == "toolset"}
    agent = ctx.frame.config.agent
    for item in agent.toolsets if agent is not None else ():
        name = item.name if isinstance(item, ToolsetRef) else item
        if isinstance(name, str) and name not in found and (builtin := find_builtin(name)) is not None:
            found[name] = builtin
    return found


def _candidates(ctx: CallContext, home: str, tool: str) -> tuple[Sequence[str], Sequence[str]]:
    """The toolsets that are known to have a tool, and those that may have it."""
    known: list[str] = []
    unknown: list[str] = []
    for name, item in _toolsets(ctx).items():
        if home and name != home:
            continue
        names = _tool_names(item)
        if names is not None and tool in names:
            if isinstance(item, GatedToolset):
                raise RunError(
                    f"{tool!r} is a tool of the toolkit {name!r}, whose state belongs to an agent's call",
                    hint="Call an agent that has the toolkit.",
                    agent_path=ctx.path,
                )
            known.append(name)
        elif names is None and _may_have(item, name, tool):
            unknown.append(name)
    return known, unknown


def _tool_names(item: object) -> list[str] | None:
    """The names of a toolset's tools; None if only the open toolset knows them."""
    if isinstance(item, BuiltinToolset):
        tools = known_tools(item, {})
        return None if tools is None else list(tools)
    shown = find_shown_tools(item)
    return None if shown is None else [each.definition.name for each in shown]


def _may_have(item: object, name: str, tool: str) -> bool:
    """Whether a toolset may have a tool; a server is only started for a name that begins with its own."""
    if isinstance(item, BuiltinToolset) and item.config.get("type") == "mcp":
        return tool.startswith(f"{name}_")
    return callable(item) or isinstance(item, AbstractToolset | BuiltinToolset)

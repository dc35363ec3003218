"""Calls from Python of tools that belong to a toolset: the declared toolsets are searched for the tool's name.

The tools of a project's functions are called in `llm_do.runtime.call.function_call`; a model's calls never come here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset

from llm_do.concurrency.worker_threads import WORKERS
from llm_do.errors import RunError, ToolError
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin, known_tools
from llm_do.project.tools.toolset_wrappers import find_shown_tools
from llm_do.runtime.call.function_call import CallArguments, checked_arguments, run_context
from llm_do.runtime.call.own_deps import call_deps, origin_of, toolset_in_call
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events.tool_events import StateChangedEvent
from llm_do.runtime.tools.iterated_results import UNLIMITED_ITEMS, collect_items
from llm_do.runtime.tools.stamped_tools import list_tools
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition
    from pydantic_ai.toolsets.abstract import ToolsetTool

    from llm_do.machines.tool_gate import ToolGate

__all__ = ["ToolsetCall", "find_toolset_call", "toolset_tool_names"]


@dataclass(frozen=True, slots=True)
class ToolsetCall:
    """A tool of an open toolset, with validated arguments.

    Args:
        toolset: The toolset.
        tool: The tool.
        args: The arguments.
        input: The arguments as events show them.
        gate: The tool's gate in its toolkit; None for a tool without one.
    """

    toolset: AbstractToolset[Any]
    tool: ToolsetTool[Any]
    args: dict[str, Any]
    input: CallArguments
    gate: ToolGate | None = None

    @property
    def repeatable(self) -> bool:
        """Whether it may simply run again if it was in flight when a run was stopped."""
        traits = traits_of(self.tool.tool_def.metadata)
        return traits is not None and traits.may_run_again

    async def run(self, caller: CallContext, child: CallContext) -> Any:
        """Run the tool in its call's context, and change the caller's state of its toolkit."""
        gate = self.gate
        if gate is None:
            return await self._result(child)
        states = caller.frame.turn.toolkits
        # One after the other: each call begins with the state that the one before it has left.
        async with caller.frame.gating.serial:
            before = gate.machine.resume(states.get(gate.key))
            if (reason := gate.check(before, self.tool.tool_def.name, self.args)) is not None:
                raise ToolError(reason, hint=f"Call what unlocks it first, from the same function: {caller.path}.")
            with gate.transaction(before, child.frame) as transaction:
                result = gate.settle(transaction, await self._result(child))
            after = states[gate.key] = transaction.after
            if after is not before:
                updates: dict[str, Any] = to_json_data(transaction.updates) if caller.run.has_listeners() else {}
                unlocked = sorted(after.unlocked_states)
                emit(child, StateChangedEvent, toolkit=gate.key, updates=updates, states=unlocked)
            return result

    async def _result(self, child: CallContext) -> Any:
        name = self.tool.tool_def.name
        with Agent.using_thread_executor(WORKERS):
            run = run_context(child, name, call_deps(child))
            value = await self.toolset.call_tool(name, self.args, run, self.tool)
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
        if ctx.deps is not None:
            toolset = toolset_in_call(toolset, origin_of(each, toolset, ctx.runtime.registry, ctx.path))
        run = run_context(ctx, tool, call_deps(ctx))
        opened = await toolset.for_run(run)
        async with opened:
            found = (await list_tools(each, opened, run, ctx.project.root)).get(tool)
            if found is None:
                continue
            definition = found.tool_def
            schema = definition.parameters_json_schema
            args = checked_arguments(ctx, tool, schema, found.args_validator, definition.metadata, value)
            gate = _gate_of(ctx, each, definition)
            yield ToolsetCall(opened, found, args, CallArguments.model_validate(args), gate)
            return
    yield None


def _gate_of(ctx: CallContext, toolset: str, definition: ToolDefinition) -> ToolGate | None:
    """The gate of a toolkit's tool, whose state the calling function has.

    Raises:
        RunError: The state is in use by an agent's call, or by the tool that makes this call.
    """
    traits = traits_of(definition.metadata)
    gate = traits.gate if traits is not None else None
    if gate is None:
        return None
    from llm_do.machines.tool_gate import OPEN_TRANSACTIONS  # a project without toolkits needs no machines

    is_open = any(each.gate.machine is gate.machine for each in OPEN_TRANSACTIONS.get())
    if is_open or ctx.frame.gating.state_of(gate.machine) is not None:
        raise RunError(
            f"{definition.name!r} is a tool of the toolkit {toolset!r}, whose state belongs to the call of {ctx.path}",
            hint="Let the agent's model call it, or call it from a function that isn't one of the agent's tools.",
            agent_path=ctx.path,
        )
    return replace(gate, key=toolset)


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

"""`Toolbox`: all tools of one agent as one toolset. Tools that never change are prepared once, not at every step.

PydanticAI asks its toolsets for their tools before each model request. For functions and agents the answer never
changes, so it is built with the agent; only toolsets that can change (factories, MCP servers, custom toolsets) are
asked again. `llm_do.runtime.agents.agent_builder` decides which toolsets an agent has.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self, cast

from pydantic_ai import RunContext, Tool as PydanticTool
from pydantic_ai.messages import InstructionPart
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import RunError
from llm_do.models.history_window import whole_history
from llm_do.runtime.tools.approval_requirement import defer_requirement, mark_approved

__all__ = ["FixedTool", "Toolbox", "check_tool_name", "function_tool", "name_clash"]

_PROVIDER_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""A tool name that every provider accepts."""


@dataclass(kw_only=True)
class FixedTool(ToolsetTool[Any]):
    """A tool that is the same at every step, with the function that calls it."""

    call: Callable[[dict[str, Any], RunContext[Any]], Awaitable[Any]]


@dataclass(kw_only=True)
class _LiveTool(ToolsetTool[Any]):
    """A tool of a toolset that is asked again at every step."""

    source: AbstractToolset[Any]
    source_tool: ToolsetTool[Any]


class Toolbox(AbstractToolset[Any]):
    """All tools of one agent.

    Args:
        agent: The agent's name, for messages.
        fixed: Tools that never change, by the name the model sees.
        live: Toolsets that are asked at every step; entered when the agent's run starts, exited when it ends.
        instructing: Toolsets whose instructions are sent to the model.
    """

    def __init__(
        self,
        agent: str,
        fixed: Mapping[str, FixedTool],
        live: Sequence[AbstractToolset[Any]] = (),
        instructing: Sequence[AbstractToolset[Any]] = (),
    ) -> None:
        self.agent = agent
        self.fixed = dict(fixed)
        self.live = tuple(live)
        self.instructing = tuple(instructing)
        self._entered = AsyncExitStack()

    @property
    def id(self) -> None:
        """None: the toolsets inside have ids of their own."""
        return

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Return the toolbox itself if nothing in it can change, otherwise one with this run's own toolsets."""
        if not self.live:
            return self
        return Toolbox(self.agent, self.fixed, [await each.for_run(ctx) for each in self.live], self.instructing)

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Return the toolbox for one step."""
        if not self.live:
            return self
        with whole_history():
            changed = [await each.for_run_step(ctx) for each in self.live]
        if all(new is old for new, old in zip(changed, self.live, strict=True)):
            return self
        step = Toolbox(self.agent, self.fixed, changed, self.instructing)
        step._entered = self._entered
        return step

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for each in self.live:
                await stack.enter_async_context(each)
            self._entered = stack.pop_all()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        if self.live:
            await self._entered.aclose()

    async def get_instructions(self, ctx: RunContext[Any]) -> list[str | InstructionPart] | None:
        """Return the toolsets' instructions for the model."""
        parts: list[str | InstructionPart] = []
        for each in (*self.instructing, *self.live):
            with whole_history():
                part = await each.get_instructions(ctx)
            if isinstance(part, str | InstructionPart):
                parts.append(part)
            elif part is not None:
                parts.extend(part)
        return parts or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return every tool, by the name the model sees, in a new dict that the run may add to."""
        tools: dict[str, ToolsetTool[Any]] = dict(self.fixed)
        for source in self.live:
            with whole_history():
                found = await source.get_tools(ctx)
            for name, tool in found.items():
                if name in tools:
                    raise name_clash(self.agent, name, tools[name].toolset, source)
                check_tool_name(self.agent, name, source)
                tools[name] = _LiveTool(
                    toolset=tool.toolset,
                    tool_def=tool.tool_def,
                    max_retries=tool.max_retries,
                    args_validator=tool.args_validator,
                    args_validator_func=tool.args_validator_func,
                    source=source,
                    source_tool=tool,
                )
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call one of the tools."""
        ctx = mark_approved(ctx)
        if isinstance(tool, FixedTool):
            return await tool.call(tool_args, ctx)
        live = cast("_LiveTool", tool)
        return await live.source.call_tool(name, tool_args, ctx, live.source_tool)

    def apply(self, visitor: Callable[[AbstractToolset[Any]], None]) -> None:
        """Apply a visitor to the toolsets inside."""
        for each in self.live:
            each.apply(visitor)


def function_tool(tool: PydanticTool[Any], owner: AbstractToolset[Any]) -> FixedTool:
    """Return a function tool that is prepared once."""
    return FixedTool(
        toolset=owner,
        tool_def=tool.tool_def,
        max_retries=tool.max_retries or 0,
        args_validator=tool.function_schema.validator,
        args_validator_func=defer_requirement(tool.args_validator),
        call=tool.function_schema.call,
    )


def check_tool_name(agent: str, name: str, source: AbstractToolset[Any]) -> None:
    """Raise `RunError` if providers reject a tool's name; the linker checks the tools it knows."""
    if _PROVIDER_NAME.fullmatch(name) is None:
        raise RunError(
            f"agent {agent!r} has a tool that can't be named {name!r}: it comes from {source.label}",
            hint="A name is 1 to 64 letters, digits, _ and -, prefix included: rename it, or shorten the `prefix:`.",
            agent_path=agent,
        )


def name_clash(agent: str, name: str, one: AbstractToolset[Any], other: AbstractToolset[Any]) -> RunError:
    """Return the error for two tools that a model would see under one name."""
    return RunError(
        f"agent {agent!r} has two tools named {name!r}: from {one.label} and from {other.label}",
        hint="Give one of the toolsets a `prefix:`.",
        agent_path=agent,
    )

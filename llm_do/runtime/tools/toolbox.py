"""`Toolbox`: all tools of one agent as one toolset. What is known beforehand is prepared once, not at every step.

PydanticAI asks its toolsets for their tools before each model request. For functions and agents the answer never
changes, so it is built with the agent; only toolsets that can change (factories, MCP servers, toolsets of one's own)
are asked again. Which toolsets an agent has is `llm_do.runtime.agents.agent_builder`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from pydantic_ai import RunContext, Tool as PydanticTool
from pydantic_ai.messages import InstructionPart
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import RunError
from llm_do.runtime.tools.approval_requirement import defer_requirement, mark_approved

__all__ = ["FixedTool", "Toolbox", "check_tool_name", "function_tool", "name_clash"]

_ON_THE_WIRE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""A tool's name as every provider takes it."""


@dataclass(kw_only=True)
class FixedTool(ToolsetTool[Any]):
    """A tool that is the same at every step, with what calling it does."""

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
        live: Toolsets that are asked at every step; entered when the agent's run begins, exited when it ends.
        speaking: Toolsets whose instructions the model is given.
    """

    def __init__(
        self,
        agent: str,
        fixed: Mapping[str, FixedTool],
        live: Sequence[AbstractToolset[Any]] = (),
        speaking: Sequence[AbstractToolset[Any]] = (),
    ) -> None:
        self.agent = agent
        self.fixed = dict(fixed)
        self.live = tuple(live)
        self.speaking = tuple(speaking)
        self._entered = AsyncExitStack()

    @property
    def id(self) -> None:
        """None: the toolsets inside have ids of their own."""
        return

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Itself where nothing in it can change, else a toolbox of this run's own toolsets."""
        if not self.live:
            return self
        return Toolbox(self.agent, self.fixed, [await each.for_run(ctx) for each in self.live], self.speaking)

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """The same for one step."""
        changed = [await each.for_run_step(ctx) for each in self.live]
        if all(new is old for new, old in zip(changed, self.live, strict=True)):
            return self
        step = Toolbox(self.agent, self.fixed, changed, self.speaking)
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
        """What the toolsets have to say to the model."""
        said: list[str | InstructionPart] = []
        for each in (*self.speaking, *self.live):
            part = await each.get_instructions(ctx)
            if isinstance(part, str | InstructionPart):
                said.append(part)
            elif part is not None:
                said.extend(part)
        return said or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Every tool, by the name the model sees; a new dict, which the run may add to."""
        tools: dict[str, ToolsetTool[Any]] = dict(self.fixed)
        for source in self.live:
            for name, tool in (await source.get_tools(ctx)).items():
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
        """Call one of them."""
        ctx = mark_approved(ctx)
        if isinstance(tool, FixedTool):
            return await tool.call(tool_args, ctx)
        live = cast("_LiveTool", tool)
        return await live.source.call_tool(name, tool_args, ctx, live.source_tool)

    def apply(self, visitor: Callable[[AbstractToolset[Any]], None]) -> None:
        """Show a visitor the toolsets inside."""
        for each in self.live:
            each.apply(visitor)


def function_tool(tool: PydanticTool[Any], owner: AbstractToolset[Any], name: str | None = None) -> FixedTool:
    """A function's tool, prepared for good."""
    definition = tool.tool_def
    if name is not None and name != definition.name:
        definition = replace(definition, name=name)
    return FixedTool(
        toolset=owner,
        tool_def=definition,
        max_retries=tool.max_retries or 0,
        args_validator=tool.function_schema.validator,
        args_validator_func=defer_requirement(tool.args_validator),
        call=tool.function_schema.call,
    )


def check_tool_name(agent: str, name: str, source: AbstractToolset[Any]) -> None:
    """See that providers take a tool's name; linking does it for tools that are known then."""
    if _ON_THE_WIRE.fullmatch(name) is None:
        raise RunError(
            f"agent {agent!r} has a tool that can't be named {name!r}: it comes from {source.label}",
            hint="A name is 1 to 64 letters, digits, _ and -, prefix included: rename it, or shorten the `prefix:`.",
            agent_path=agent,
        )


def name_clash(agent: str, name: str, one: AbstractToolset[Any], other: AbstractToolset[Any]) -> RunError:
    """Two tools that a model would see under one name."""
    return RunError(
        f"agent {agent!r} has two tools named {name!r}: from {one.label} and from {other.label}",
        hint="Give one of the toolsets a `prefix:`.",
        agent_path=agent,
    )

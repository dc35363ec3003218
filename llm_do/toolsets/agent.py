"""`AgentToolset`: an agent as a toolset of one tool, which `llm_do.runtime.call.callable_tool` defines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.project.agent_spec import AgentSpec
from llm_do.runtime.call.callable_tool import agent_tool
from llm_do.runtime.context.call_context import CallContext

__all__ = ["AgentToolset", "agent_as_toolset"]


@dataclass(init=False)
class AgentToolset(AbstractToolset[CallContext]):
    """A toolset with one tool that calls an agent by its name.

    Args:
        spec: The agent.

    Example:
        >>> AgentToolset(AgentSpec("critic", description="Judges a text.")).id
        'critic'
    """

    spec: AgentSpec

    def __init__(self, spec: AgentSpec) -> None:
        self.spec = spec
        self._tool = agent_tool(spec, self)

    @property
    def id(self) -> str:
        """The agent's name."""
        return self.spec.name

    async def get_tools(self, ctx: RunContext[CallContext]) -> dict[str, ToolsetTool[CallContext]]:
        """Return the one tool."""
        return {self.spec.name: self._tool}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[CallContext], tool: ToolsetTool[CallContext]
    ) -> Any:
        """Call the agent as a child of the call whose model requested it."""
        return await self._tool.call(tool_args, ctx)


def agent_as_toolset(spec: AgentSpec) -> AgentToolset:
    """Return the toolset of one agent; equivalent to `AgentToolset(spec)`."""
    return AgentToolset(spec)  # 0.3's name: see llm_do.compat

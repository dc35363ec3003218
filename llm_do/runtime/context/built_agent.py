"""`BuiltAgent`: an agent ready to run, built by `llm_do.runtime.agents.agent_builder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm_do.project.agent_spec import takes_deps

if TYPE_CHECKING:
    from pydantic_ai import Agent, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.runtime.context.hooks import Hooks

__all__ = ["BuiltAgent", "parts_of"]


@dataclass(frozen=True, eq=False)
class BuiltAgent:
    """An agent ready to run.

    Args:
        spec: Its declaration.
        agent: The PydanticAI agent.
        hooks: Its hooks.
        toolsets: Names of its toolsets.
        settings: Its model settings, including the project's and those of the connection.
        capabilities: Additional capabilities for its runs, if the project's own code has built the agent.
        machines: One gate of each state machine that its tools belong to.
        declared: The gates that the agent itself declares, by the tool names its model sees.
        tools: Its tools that are known before a run.
        conditional: Names of the tools that a run may hide.
        open: Names of the toolsets whose tools are known only at run time.
        deps: Holds what its tools get as `ctx.deps`, if the project's own code has built the agent.
        built_from: The parts of the declaration it was built from; None if the project's own code has built the agent.
    """

    spec: AgentSpec
    agent: Agent[Any, Any]
    hooks: Hooks
    toolsets: tuple[str, ...]
    settings: Mapping[str, Any]
    capabilities: tuple[AbstractCapability[Any], ...] = ()
    machines: tuple[ToolGate, ...] = ()
    declared: Mapping[str, ToolGate] = field(default_factory=dict[str, "ToolGate"])
    tools: tuple[ToolDefinition, ...] = ()
    conditional: frozenset[str] = frozenset()
    open: tuple[str, ...] = ()
    deps: tuple[object] | None = None
    built_from: tuple[object, ...] | None = None

    def is_current(self) -> bool:
        """Whether the declaration is unchanged since the agent was built; a tool may have been added."""
        built_from = self.built_from
        return built_from is None or all(
            one is other for one, other in zip(built_from, parts_of(self.spec), strict=True)
        )


def parts_of(spec: AgentSpec) -> tuple[object, ...]:
    """Return the parts of a declaration that an agent is built from; all others are read at each call."""
    return (
        spec.instructions,
        spec.tools,
        spec.toolsets,
        spec.skills,
        spec.handoffs,
        spec.hooks,
        spec.output_type,
        spec.model_settings,
        spec.temperature,
        spec.max_tokens,
        spec.retries,
        spec.server_side_tools,
        spec.capabilities,
        takes_deps(spec),
        spec.template,
        spec.states,
        spec.gate,
    )

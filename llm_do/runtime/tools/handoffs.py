"""Handoffs: the tools that hand control to another agent, and the signal that ends the call.

The next agent is run by `llm_do.runtime.call.handoff_chain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from typing_extensions import TypedDict

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import handoff_names
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import ToolTraits

if TYPE_CHECKING:
    from llm_do.project.registry import Registry

__all__ = ["Handoff", "HandoffSignal", "handoff_by_text", "transfer_name", "transfer_tools"]


@frozen
class Handoff:
    """An agent's decision to hand over control.

    Args:
        target: Name of the agent that gets control.
        reason: Why, for that agent and for people.
        by_text: Whether the agent answered with the target's name instead of calling the tool.
    """

    target: str
    reason: str = ""
    by_text: bool = False


class HandoffSignal(Exception):  # noqa: N818 (not an error: it ends the run of the agent that hands over)
    """Raised instead of the next model request, after all tool calls of the response have run."""


class _Frame(Protocol):
    handoff: Handoff | None


class _Caller(Protocol):
    """A call that can hand over."""

    @property
    def frame(self) -> _Frame: ...


class TransferArguments(TypedDict):
    """The arguments of a transfer tool."""

    reason: str


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "Why, and what the other agent needs to know."}},
    "required": ["reason"],
    "additionalProperties": False,
}
_VALIDATOR: Any = TypeAdapter(TransferArguments).validator


def transfer_name(target: str) -> str:
    """Return the name of the tool that hands control to an agent.

    Example:
        >>> transfer_name("billing")
        'transfer_to_billing'
    """
    return f"transfer_to_{target}"


def transfer_tools(spec: AgentSpec, registry: Registry) -> Iterator[FixedTool]:
    """Yield the tools with which an agent hands over control, one for each name in its `handoffs`.

    Args:
        spec: The agent.
        registry: Provides the descriptions of the other agents.
    """
    owner: FunctionToolset[Any] = FunctionToolset(id="handoffs")
    targets = {item if isinstance(item, str) else item.name: item for item in spec.handoffs}
    for name, item in targets.items():
        target = registry.agent(item) if isinstance(item, str) else item
        yield _transfer_tool(name, target.description if target is not None else None, owner)


def handoff_by_text(spec: AgentSpec, output: object) -> Handoff | None:
    """The handoff of an agent whose answer is exactly the name of one of its targets."""
    if isinstance(output, str) and output.strip() in handoff_names(spec):
        return Handoff(output.strip(), by_text=True)
    return None


def _transfer_tool(target: str, description: str | None, owner: AbstractToolset[Any]) -> FixedTool:
    async def transfer(args: dict[str, Any], ctx: RunContext[_Caller]) -> str:
        frame = ctx.deps.frame
        if frame.handoff is not None:
            raise ToolError(f"control already goes to {frame.handoff.target}")
        frame.handoff = Handoff(target, args["reason"])
        return f"Control goes to {target}."

    sentence = f"Hand the conversation over to {target}."
    definition = ToolDefinition(
        name=transfer_name(target),
        description=f"{sentence} {description}" if description else sentence,
        parameters_json_schema=_SCHEMA,
        metadata=ToolTraits(ToolFacts("handoff", primary="reason"), tool=target).metadata(),
    )
    return FixedTool(toolset=owner, tool_def=definition, max_retries=0, args_validator=_VALIDATOR, call=transfer)

"""An agent's answer, and those of the agents it hands control to: one call for the caller, a conversation inside.

How a model hands over is `llm_do.runtime.tools.handoffs`. A chain is what calling an agent means wherever it is called:
as an entry, from Python, as a tool, as a step of a flow. An agent without `handoffs` is a chain of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from llm_do.errors import HandoffLimitError, InputError, RunError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.inputs import PromptInput, to_input
from llm_do.runtime.call.agent_run import run_agent
from llm_do.runtime.call.nested_context import agent_context
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.gated_tools import GateState
from llm_do.runtime.tools.handoffs import Handoff

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["MAX_HANDOFFS", "Chain", "find_target"]

MAX_HANDOFFS = 10
"""Most handoffs in one call of an agent where no flow says otherwise."""

Resolve = Callable[[str, AgentSpec], "AgentSpec | None"]


@dataclass(slots=True)
class Chain:
    """One call of an agent, and of those it hands over to.

    Args:
        ctx: The caller.
        call_id: The first call's id, derived from the caller's; the following ones' are derived from it.
        position: Where in a flow the call stands, such as `2/`.
        numbered: Each agent's call is a step of its own, counted from 1: the way of a handoff flow.
        nested: Whether `RunResult.calls` tells of the first agent; it tells of all others.
        limit: Most handoffs.
        resolve: Finds an agent that another one names; None looks at its `handoffs`, then at the registry.
        messages: The conversation, that before included; put here when it ends, however it ends.
        agent: Name of the agent that was in control last.
        toolkits: The states of the conversation's toolkits, before it and, when it has ended, after it.
    """

    ctx: CallContext
    call_id: str
    position: str = ""
    numbered: bool = False
    nested: bool = True
    limit: int = MAX_HANDOFFS
    resolve: Resolve | None = None
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    agent: str = ""
    toolkits: dict[str, GateState] = field(default_factory=dict[str, GateState])

    async def run(self, spec: AgentSpec, given: BaseModel, history: Sequence[ModelMessage] = ()) -> Any:
        """Run the agent, and whoever it hands over to, until one answers."""
        route = [spec.name]
        # What keeps the first agent from beginning leaves the conversation as it was.
        self.messages[:] = history
        while True:
            handed, output = await self._one(spec, given, history, len(route))
            if handed is None:
                return output
            if len(route) > self.limit:
                raise HandoffLimitError(
                    f"control was handed over more than {self.limit} times: {' -> '.join([*route, handed.target])}",
                    hint="Say in the agents' instructions when to answer, or raise `max_handoffs`.",
                    agent_path=self.ctx.path,
                    messages=self.messages,
                )
            # What an agent says to hand over in words is no part of the conversation: the next one answers the person.
            history = self.messages[:-1] if handed.by_text else self.messages
            spec = self._target(handed.target, spec)
            given = _fitting(spec, given)
            route.append(spec.name)

    async def _one(
        self, spec: AgentSpec, given: BaseModel, history: Sequence[ModelMessage], number: int
    ) -> tuple[Handoff | None, Any]:
        position = f"{self.position}{number}/" if self.numbered else self.position
        if self.numbered:
            call_id = f"{self.call_id}.{position.replace('/', '.')}{spec.name}"
        else:
            call_id = self.call_id if number == 1 else f"{self.call_id}-{number}"
        ctx = self.ctx
        child = agent_context(ctx, spec, given, call_id=call_id, position=position, toolkits=self.toolkits)
        self.agent = spec.name
        try:
            output = await run_agent(
                child,
                ctx.runtime.builder.built(spec),
                nested=self.nested or number > 1,
                history=history,
                resumes=number > 1,
            )
        finally:
            self.messages[:] = child.frame.messages
            if child.depth == 1:
                ctx.run.conversation = child.frame.messages
            self.toolkits.update(child.frame.gating.result())
            if not self.nested:
                ctx.frame.usage += child.frame.usage
            if self.position or self.numbered or not self.nested:
                # What a run that ends here has to show; an agent that calls another has a text of its own.
                ctx.frame.text = child.frame.text
        return child.frame.handoff, output

    def _target(self, name: str, source: AgentSpec) -> AgentSpec:
        found = self.resolve(name, source) if self.resolve else find_target(self.ctx, name, source)
        if found is None:
            raise RunError(
                f"agent {source.name!r} hands over to {name!r}, which is no agent",
                hint="List agents of the project in `handoffs`.",
                agent_path=self.ctx.path,
                messages=self.messages,
            )
        return found


def find_target(ctx: CallContext, name: str, source: AgentSpec) -> AgentSpec | None:
    """The agent that another one means by a name in its `handoffs`."""
    for item in source.handoffs:
        if isinstance(item, AgentSpec) and item.name == name:
            return item
    return ctx.runtime.registry.agent(name)


def _fitting(spec: AgentSpec, given: BaseModel) -> BaseModel:
    """The request as the agent's own input model where it fits that, since its template may speak of the fields."""
    try:
        return to_input(spec.input_model or PromptInput, given)
    except InputError:
        return given

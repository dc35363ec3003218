"""An agent's answer, and those of the agents it hands control to: one call for the caller, a conversation inside.

How a model hands over is `llm_do.runtime.tools.handoffs`. A chain is what calling an agent means wherever it is called:
as an entry, from Python, as a tool, as a step of a flow. An agent without `handoffs` is a chain of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do.errors import HandoffLimitError, InputError, RunError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.inputs import PromptInput, to_input
from llm_do.runtime.call.agent_run import agent_context, run_agent
from llm_do.runtime.call.call_scope import CallSite
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.call_frame import Turn
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from pydantic import BaseModel

    from llm_do.project.registry import Registry

__all__ = ["MAX_HANDOFFS", "HandoffChain", "find_target"]

MAX_HANDOFFS = 10
"""Most handoffs in one call of an agent, unless a flow sets another limit."""

Resolve = Callable[[str, AgentSpec], "AgentSpec | None"]


@dataclass(slots=True)
class HandoffChain:
    """One call of an agent, and of those it hands over to.

    Args:
        ctx: The caller.
        site: Where the caller makes the call; None makes each agent's call a numbered step, as in a handoff flow.
        turn: The turn of the conversation.
        limit: Most handoffs.
        resolve: Finds an agent that another one names; None looks at its `handoffs`, then at the registry.
        agent: Name of the agent that was in control last; empty if none has begun.
    """

    ctx: CallContext
    site: CallSite | None
    turn: Turn
    limit: int = MAX_HANDOFFS
    resolve: Resolve | None = None
    agent: str = ""

    async def run(self, spec: AgentSpec, input: BaseModel) -> Any:
        """Run the agent, and whoever it hands over to, until one answers."""
        ctx, turn, history = self.ctx, self.turn, self.turn.history
        route = [spec.name]
        # What keeps the first agent from beginning leaves the conversation as it was.
        turn.messages[:] = history
        while True:
            number = ctx.run.begin_conversation()
            await ctx.runtime.builder.prepare(spec)
            site = self._site(spec.name, len(route))
            child = agent_context(ctx, spec, input, site, turn.toolkits)
            self.agent = spec.name
            first = len(route) == 1
            try:
                output = await run_agent(
                    child, history, listed=not (first and ctx.frame.config.is_root), resumes=not first
                )
            finally:
                self._keep(child, site, number)
            handoff = child.frame.handoff
            if handoff is None:
                return output
            if len(route) > self.limit:
                times = with_count(self.limit, "time")
                raise HandoffLimitError(
                    f"control was handed over more than {times}: {' -> '.join([*route, handoff.target])}",
                    hint="Say in the agents' instructions when to answer, or raise `max_handoffs`.",
                    agent_path=ctx.path,
                    messages=turn.messages,
                )
            # A text that only names the next agent isn't part of the conversation: that agent answers the person.
            history = turn.messages[:-1] if handoff.by_text else turn.messages
            spec = self._target(handoff.target, spec)
            input = _refit(spec, input)
            route.append(spec.name)

    def _site(self, name: str, number: int) -> CallSite:
        if self.site is None:
            return CallSite.step(f"{number}/", name)
        return self.site if number == 1 else CallSite(f"{self.site.key}-{number}", self.site.position)

    def _keep(self, child: CallContext, site: CallSite, number: int) -> None:
        """Keep what an agent's call leaves to the conversation, however it ended."""
        ctx, turn = self.ctx, self.turn
        turn.messages[:] = child.frame.messages
        turn.toolkits.update(child.frame.gating.result())
        if child.depth == 1:
            ctx.run.keep_conversation(number, child.frame.messages)
        if site.position or ctx.frame.config.is_root:
            # The partial output of a run that ends here; an agent that calls another has a text of its own.
            ctx.frame.text = child.frame.text

    def _target(self, name: str, source: AgentSpec) -> AgentSpec:
        found = self.resolve(name, source) if self.resolve else find_target(self.ctx.runtime.registry, name, source)
        if found is None:
            raise RunError(
                f"agent {source.name!r} hands over to {name!r}, which isn't an agent",
                hint="List agents of the project in `handoffs`.",
                agent_path=self.ctx.path,
                messages=self.turn.messages,
            )
        return found


def find_target(registry: Registry, name: str, source: AgentSpec) -> AgentSpec | None:
    """The agent that another one means by a name in its `handoffs`."""
    for item in source.handoffs:
        if isinstance(item, AgentSpec) and item.name == name:
            return item
    return registry.agent(name)


def _refit(spec: AgentSpec, input: BaseModel) -> BaseModel:
    """The request as the agent's own input model where it fits that, since its template may use the fields."""
    try:
        return to_input(spec.input_model or PromptInput, input)
    except InputError:
        return input

"""How each mode of flow runs. A flow calls its members through the runtime, like any other call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from llm_do.errors import RunError
from llm_do.flows.flow_members import bind_members
from llm_do.flows.plan import run_plan
from llm_do.flows.team import build_lead
from llm_do.flows.workflow import Workflow
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.runtime.call.call_scope import CallSite
from llm_do.runtime.call.handoff_chain import HandoffChain, find_target
from llm_do.runtime.context.call_context import CallContext

__all__ = ["run"]


async def run(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    """Run a flow in the context of its call; `ctx.frame.turn` is the current turn of its conversation."""
    return await _MODES[flow.mode](flow, input, ctx)


async def _workflow(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    return await Workflow(flow, ctx).run(input)


async def _handoff(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    """Run the first agent, or the one in control since the last turn, and the agents it hands off to."""
    turn = ctx.frame.turn
    starts = turn.active if turn.active in flow.agents else flow.agents[0]

    def resolve(name: str, source: AgentSpec) -> AgentSpec | None:
        member = flow.members.get(name)
        found = member if isinstance(member, AgentSpec) else find_target(ctx.runtime.registry, name, source)
        return bind_members(flow, found) if found is not None else None

    chain = HandoffChain(ctx, None, turn, flow.max_handoffs, resolve)
    try:
        return await chain.run(bind_members(flow, agent_named(flow, starts, ctx)), input)
    finally:
        turn.active = chain.agent or starts


async def _team(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    """Run the lead, which has a tool for each worker."""
    lead = build_lead(flow, agent_named(flow, flow.agents[0], ctx), ctx.runtime.registry)

    def resolve(name: str, source: AgentSpec) -> AgentSpec | None:
        return lead if name == lead.name else find_target(ctx.runtime.registry, name, source)

    return await HandoffChain(ctx, CallSite.step("1/", lead.name), ctx.frame.turn, resolve=resolve).run(lead, input)


def agent_named(flow: FlowSpec, name: str, ctx: CallContext) -> AgentSpec:
    """Return a member that has to be an agent."""
    found = as_member(flow, name, ctx.runtime.registry)
    if found is None or found.kind != "agent":
        raise RunError(
            f"flow {flow.name!r} needs an agent named {name!r}",
            hint="Register the agent, or pass its AgentSpec.",
            agent_path=ctx.path,
        )
    return found.value


_Mode: TypeAlias = Callable[[FlowSpec, BaseModel, CallContext], Awaitable[Any]]
_MODES: Mapping[str, _Mode] = {"workflow": _workflow, "handoff": _handoff, "team": _team, "plan": run_plan}

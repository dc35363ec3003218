"""How each kind of flow runs. Everything it calls goes through the runtime's dispatch, as any other call does."""

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
from llm_do.runtime.call.flow_turn import FlowTurn
from llm_do.runtime.call.handoff_chain import Chain, find_target
from llm_do.runtime.tools.gated_tools import GateState

__all__ = ["run"]


async def run(flow: FlowSpec, given: BaseModel, turn: FlowTurn) -> Any:
    """Carry out `llm_do.runtime.call.flow_turn.run_flow`, which says what goes in and comes out."""
    return await _MODES[flow.mode](flow, given, turn)


async def _workflow(flow: FlowSpec, given: BaseModel, turn: FlowTurn) -> Any:
    return await Workflow(flow, turn).run(given)


async def _handoff(flow: FlowSpec, given: BaseModel, turn: FlowTurn) -> Any:
    """The first agent, or the one in control since the last turn, and whoever it hands over to."""
    starts = turn.active if turn.active in flow.agents else flow.agents[0]

    def resolve(name: str, source: AgentSpec) -> AgentSpec | None:
        member = flow.members.get(name)
        found = member if isinstance(member, AgentSpec) else find_target(turn.ctx, name, source)
        return bind_members(flow, found) if found is not None else None

    chain = Chain(
        turn.ctx,
        turn.ctx.call_id,
        numbered=True,
        limit=flow.max_handoffs,
        resolve=resolve,
        messages=turn.messages,
        toolkits=_toolkits(turn),
    )
    try:
        return await chain.run(bind_members(flow, agent_named(flow, starts, turn)), given, turn.history)
    finally:
        turn.active = chain.agent or starts


async def _team(flow: FlowSpec, given: BaseModel, turn: FlowTurn) -> Any:
    """The lead, which has a tool for each worker."""
    lead = build_lead(flow, agent_named(flow, flow.agents[0], turn), turn.ctx.runtime.registry)

    def resolve(name: str, source: AgentSpec) -> AgentSpec | None:
        return lead if name == lead.name else find_target(turn.ctx, name, source)

    chain = Chain(
        turn.ctx,
        f"{turn.ctx.call_id}.1.{lead.name}",
        "1/",
        resolve=resolve,
        messages=turn.messages,
        toolkits=_toolkits(turn),
    )
    return await chain.run(lead, given, turn.history)


def _toolkits(turn: FlowTurn) -> dict[str, GateState]:
    """The states of the toolkits of a flow that is one conversation: the run's where the run begins with the flow."""
    return turn.ctx.run.toolkits if turn.ctx.depth == 0 else {}


def agent_named(flow: FlowSpec, name: str, turn: FlowTurn) -> AgentSpec:
    """A member that has to be an agent."""
    found = as_member(flow, name, turn.ctx.runtime.registry)
    if found is None or found.kind != "agent":
        raise RunError(
            f"flow {flow.name!r} needs an agent named {name!r}",
            hint="Register the agent, or pass its AgentSpec.",
            agent_path=turn.ctx.path,
        )
    return found.value


_Mode: TypeAlias = Callable[[FlowSpec, BaseModel, FlowTurn], Awaitable[Any]]
_MODES: Mapping[str, _Mode] = {"workflow": _workflow, "handoff": _handoff, "team": _team, "plan": run_plan}

"""Agents inside a flow: names in their `handoffs` mean the flow's own members."""

from __future__ import annotations

import threading
from dataclasses import replace
from weakref import WeakKeyDictionary

from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec

__all__ = ["bind_members"]

_bound: WeakKeyDictionary[FlowSpec, dict[AgentSpec, AgentSpec]] = WeakKeyDictionary()
_lock = threading.Lock()


def bind_members(flow: FlowSpec, spec: AgentSpec) -> AgentSpec:
    """Resolve an agent's handoffs to members of the flow; cached, so that the agent is built once for all runs."""
    targets: list[object] = [flow.members.get(item) if isinstance(item, str) else item for item in spec.handoffs]
    if not any(isinstance(target, AgentSpec) and target is not item for target, item in _pairs(targets, spec)):
        return spec
    with _lock:
        known = _bound.setdefault(flow, {})
        if spec not in known:
            handoffs = tuple(
                target if isinstance(target, AgentSpec) else item for target, item in _pairs(targets, spec)
            )
            known[spec] = replace(spec, handoffs=handoffs)
        return known[spec]


def _pairs(targets: list[object], spec: AgentSpec) -> list[tuple[object, str | AgentSpec]]:
    return list(zip(targets, spec.handoffs, strict=True))

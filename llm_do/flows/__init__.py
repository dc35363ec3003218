"""Flows: several agents under one name, as a workflow, with handoffs, or as a team.

`swarm` declares them in code; `modes` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {
    "FlowSpec": "llm_do.project.flow_spec",
    "JoinedText": "llm_do.flows.joined",
    "MemberFailure": "llm_do.flows.joined",
    "ParallelGroup": "llm_do.flows.swarm",
    "SerialGroup": "llm_do.flows.swarm",
    "Swarm": "llm_do.flows.swarm",
    "SwarmNode": "llm_do.flows.swarm",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.flows.joined import JoinedText as JoinedText, MemberFailure as MemberFailure
    from llm_do.flows.swarm import (
        ParallelGroup as ParallelGroup,
        SerialGroup as SerialGroup,
        Swarm as Swarm,
        SwarmNode as SwarmNode,
    )
    from llm_do.project.flow_spec import FlowSpec as FlowSpec

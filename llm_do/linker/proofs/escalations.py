"""Escalations: tools that rules restrict for an agent, but that it can use without approval through others it calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.permissions import Permission, permission_for
from llm_do.linker.proofs.call_graph import CallGraph, Edge, Node

if TYPE_CHECKING:
    from llm_do.linker.analysis.inventory import KnownTool
    from llm_do.policy.values import Decision
    from llm_do.project.project import Project

__all__ = ["Escalation", "find_escalations"]


@frozen
class Escalation:
    """A tool that an agent may not call freely, but can through another agent at the call path `path`.

    `own` is the decision about the first agent's own call.
    """

    path: str
    tool: str
    own: Decision


def find_escalations(project: Project) -> Iterator[Escalation]:
    """Find the escalations of a project whose entry is an agent."""
    rules = project.policy.rules
    if not any(rule.pattern.agent is not None or rule.pattern.agent_path is not None for rule in rules):
        return
    graph, reported = CallGraph(project), set[tuple[str, str, str]]()
    for way in graph.paths(graph.entry, project.settings.max_depth):
        steps = _steps(graph.entry, way)
        for start in range(len(way)):
            if steps[start].node.kind != "agent" or not _is_open(project, way[start:], steps[start:]):
                continue
            for found in _through(project, graph, steps[start], steps[-1]):
                key = (steps[start].node.name, steps[-1].node.name, found.tool)
                if key not in reported:
                    reported.add(key)
                    yield found


@frozen
class _Step:
    """A node on a way, and its call path."""

    node: Node
    path: tuple[str, ...]

    def permission(self, tool: KnownTool, project: Project) -> Permission:
        """What policy decides about an ordinary call that is made here."""
        return permission_for(tool, "/".join(self.path), project.policy, project.settings, agent=self.node.name)


def _steps(start: Node, way: Sequence[Edge]) -> list[_Step]:
    steps = [_Step(start, (start.name,))]
    for edge in way:
        steps.append(_Step(edge.target, edge.path_after(steps[-1].path)))
    return steps


def _is_open(project: Project, way: Sequence[Edge], steps: Sequence[_Step]) -> bool:
    """Whether every call on a way is allowed without approval; what a flow runs needs none."""
    pairs = zip(way, steps, strict=False)
    return all(edge.tool is None or step.permission(edge.tool, project).effect == "allow" for edge, step in pairs)


def _through(project: Project, graph: CallGraph, first: _Step, last: _Step) -> Iterator[Escalation]:
    """Yield what is restricted for the first agent and allowed for the last."""
    for tool in graph.tools(last.node).tools:
        if tool.kind in ("agent", "flow", "handoff"):
            continue
        own = first.permission(tool, project).decision
        if own.source in ("deny", "ask") and last.permission(tool, project).effect == "allow":
            yield Escalation("/".join(last.path), tool.name, own)

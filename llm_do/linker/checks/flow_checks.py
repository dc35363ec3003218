"""What can be wrong with a flow: names, duplicates, cycles, unreachable members.

A fault has a position in the flow, which the caller turns into a location in a file. The syntax of expressions is in
`llm_do.formats.syntax.flow_expression`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import Problem, flows as problems
from llm_do.formats.syntax.flow_expression import Reference, names_in
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member, handoff_names
from llm_do.project.registry import Registered

__all__ = [
    "FlowFault",
    "FlowPosition",
    "delegate_name",
    "find_flow_faults",
    "find_own_faults",
    "flow_positions",
    "transfer_tool_names",
]


@frozen
class FlowPosition:
    """Where in a flow.

    Args:
        key: The part as the manifest has it, such as `flow`, `agents` or `lead`; empty for the flow itself.
        index: Which member of a list; -1 for none.
        start: Offset in the expression; -1 for none.
        end: Offset just behind it.
    """

    key: str = ""
    index: int = -1
    start: int = -1
    end: int = -1


@frozen
class FlowFault:
    """One thing that is wrong, and where in the flow."""

    problem: Problem
    position: FlowPosition


def delegate_name(worker: str) -> str:
    """The name of the tool with which a lead gives a worker a task.

    Example:
        >>> delegate_name("reporter")
        'delegate_to_reporter'
    """
    return f"delegate_to_{worker}"


def transfer_tool_names(spec: AgentSpec) -> tuple[str, ...]:
    """The names of the tools with which an agent hands over."""
    return tuple(f"transfer_to_{name}" for name in dict.fromkeys(handoff_names(spec)))


def find_own_faults(flow: FlowSpec) -> Iterator[FlowFault]:
    """Faults that don't depend on what the names refer to: duplicates, and nothing to run."""
    if flow.tree is None and not flow.agents:
        yield FlowFault(problems.flow_without_members(flow.name), FlowPosition())
    written: set[str] = set()
    for step in names_in(flow.tree) if flow.tree is not None else ():
        if step.name in written:
            yield FlowFault(problems.repeated_step(step.name), _step(step))
        written.add(step.name)
    seen: set[str] = set()
    for index, name in enumerate(flow.agents):
        if name in seen:
            yield FlowFault(problems.repeated_member(name), _listed(flow, index))
        elif flow.tree is not None and name not in written:
            yield FlowFault(problems.unused_member(name), _listed(flow, index))
        seen.add(name)


def find_flow_faults(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Faults of a flow among all names of a project; unknown names are ignored."""
    for name, position in flow_positions(flow):
        found = as_member(flow, name, registry)
        if found is not None and found.kind == "flow":
            route = _way_back(found.value, flow, registry, set())
            if route is not None:
                path = [flow.name, *(item.name for item in route)]
                yield FlowFault(problems.circular_flow(path), position)
    if flow.mode == "handoff":
        yield from _handoff_faults(flow, registry)


def flow_positions(flow: FlowSpec) -> Iterator[tuple[str, FlowPosition]]:
    """Every name that a flow refers to, with its position: in the expression if it is there, else in the list."""
    written: set[str] = set()
    for step in names_in(flow.tree) if flow.tree is not None else ():
        written.add(step.name)
        yield step.name, _step(step)
    for index, name in enumerate(flow.agents):
        if name not in written:
            yield name, _listed(flow, index)


def _handoff_faults(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Handoffs out of the flow, and agents that no handoff leads to."""
    targets: dict[str, tuple[str, ...]] = {}
    for index, name in enumerate(flow.agents):
        found = as_member(flow, name, registry)
        if found is None or found.kind != "agent":
            continue
        targets[name] = handoff_names(found.value)
        for outside in (target for target in targets[name] if target not in flow.agents):
            yield FlowFault(problems.handoff_outside(name, outside), _listed(flow, index))
    reached: set[str] = set()
    waiting = list(flow.agents[:1])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(targets.get(name, ()))
    for index, name in enumerate(flow.agents):
        if name in targets and name not in reached:
            yield FlowFault(problems.no_handoff_to(name), _listed(flow, index))


def _way_back(
    inner: FlowSpec, start: FlowSpec, registry: Mapping[str, Registered], seen: set[FlowSpec]
) -> tuple[FlowSpec, ...] | None:
    """The flows on the path from one back to the start, None when there is no path; each is visited once."""
    if inner is start:
        return (inner,)
    if inner in seen:
        return None
    seen.add(inner)
    for name in inner.names():
        found = as_member(inner, name, registry)
        if found is not None and found.kind == "flow":
            rest = _way_back(found.value, start, registry, seen)
            if rest is not None:
                return (inner, *rest)
    return None


def _step(step: Reference) -> FlowPosition:
    return FlowPosition("flow", start=step.start, end=step.start + len(step.name))


_PLAN = ("planner", "executor", "synthesiser")


def _listed(flow: FlowSpec, index: int) -> FlowPosition:
    if flow.mode == "plan" and index < len(_PLAN):
        return FlowPosition(_PLAN[index])
    if flow.mode == "team":
        return FlowPosition("lead") if index == 0 else FlowPosition("workers", index - 1)
    return FlowPosition("agents", index)

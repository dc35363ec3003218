"""Checks of flows: names, duplicates, cycles, unreachable members.

The caller turns the position of a fault in a flow into a location in a file. `llm_do.formats.syntax.flow_expression`
parses expressions.
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
    """A position in a flow: the manifest's key, such as `flow`, `agents` or `lead`, or the flow itself if empty.

    `index` is the member of a list; `start` and `end` are offsets in the expression. -1 means none.
    """

    key: str = ""
    index: int = -1
    start: int = -1
    end: int = -1


@frozen
class FlowFault:
    """A fault and its position in the flow."""

    problem: Problem
    position: FlowPosition


def delegate_name(worker: str) -> str:
    """Return the name of the tool with which a lead delegates a task to a worker.

    Example:
        >>> delegate_name("reporter")
        'delegate_to_reporter'
    """
    return f"delegate_to_{worker}"


def transfer_tool_names(spec: AgentSpec) -> tuple[str, ...]:
    """Return the names of the tools with which an agent hands over."""
    return tuple(f"transfer_to_{name}" for name in dict.fromkeys(handoff_names(spec)))


def find_own_faults(flow: FlowSpec) -> Iterator[FlowFault]:
    """Find the faults that don't depend on other definitions: duplicates, and nothing to run."""
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
    """Find the faults of a flow, given all names of a project; ignore unknown names."""
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
    """Return every name that a flow refers to, with its position in the expression, or else in the list."""
    written: set[str] = set()
    for step in names_in(flow.tree) if flow.tree is not None else ():
        written.add(step.name)
        yield step.name, _step(step)
    for index, name in enumerate(flow.agents):
        if name not in written:
            yield name, _listed(flow, index)


def _handoff_faults(flow: FlowSpec, registry: Mapping[str, Registered]) -> Iterator[FlowFault]:
    """Find handoffs out of the flow, and agents that no handoff leads to."""
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
    """Return the flows on the path from one back to the start, None if there is no path; visit each once."""
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

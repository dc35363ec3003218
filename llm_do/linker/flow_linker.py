"""Linking flows: from the manifest's declarations to `FlowSpec`s, and from faults to locations in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.diagnostics.codes.flows import clashing_tool, two_declarations
from llm_do.diagnostics.codes.names import wrong_kind
from llm_do.diagnostics.codes.tools import long_given_name
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.syntax.flow_expression import FlowSyntaxError, FlowTree, offset_in_json, parse_flow
from llm_do.linker.analysis.inventory import AgentTools
from llm_do.linker.analysis.names import Names
from llm_do.linker.checks.flow_checks import (
    FlowPosition,
    delegate_name,
    find_condition_faults_of,
    find_flow_faults,
    find_own_faults,
    flow_positions,
    transfer_tool_names,
)
from llm_do.linker.python.references import References
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member, every_caller
from llm_do.project.plan_members import plan_members
from llm_do.project.registry import NAME_PATTERN, Registered

if TYPE_CHECKING:
    from llm_do.formats.parts.flows import FlowFile, WorkflowFile
    from llm_do.formats.syntax.source import Node

__all__ = ["check_flows", "check_given_tools", "register_flows"]


def register_flows(files: ProjectFiles, names: Names, references: References) -> None:
    """Register the manifest's flows; one whose members can't be read is reported and left out."""
    if files.manifest is None:
        return
    for name, declared in files.manifest.flows.items():
        place = files.key_place("flows", name)
        flow = _flow(name, declared, files, names, references, place)
        if flow is None:
            names.broken.names.add(name)
        else:
            names.register(name, "flow", flow, place)


def _flow(
    name: str, declared: FlowFile, files: ProjectFiles, names: Names, references: References, place: Location
) -> FlowSpec | None:
    common: dict[str, Any] = {"name": name, "description": declared.description, "place": place}
    if declared.mode == "handoff":
        return FlowSpec(**common, mode="handoff", agents=tuple(declared.agents), max_handoffs=declared.max_handoffs)
    if declared.mode == "team":
        return FlowSpec(**common, mode="team", agents=(declared.lead, *declared.workers))
    if declared.mode == "plan":
        agents, members = plan_members(declared.planner, declared.executor, declared.synthesiser)
        return FlowSpec(**common, mode="plan", agents=agents, members=members)
    aggregate = None
    if declared.aggregate is not None:
        where = files.place("flows", name, "aggregate")
        aggregate = references.function(declared.aggregate, where, 1, "(outputs)")
    tree: FlowTree | None = None
    node = files.node.at(("flows", name)) if files.node is not None else None
    if declared.steps is not None and declared.flow is not None:
        names.report(two_declarations(name), _place(node, place, FlowPosition("flow")))
        return None
    if node is not None and _lost_members(declared, node):
        return None
    try:
        if declared.flow is not None:
            tree = parse_flow(declared.flow)
        elif declared.steps is not None:
            from llm_do.formats.parts.flow_steps import tree_of  # models that only a manifest needs

            tree = tree_of(declared.steps, declared.on_error)
    except FlowSyntaxError as error:
        position = FlowPosition("flow", start=error.start, end=error.end, keys=error.keys)
        names.report(error.problem, _place(node, place, position))
        return None
    return FlowSpec(
        **common,
        agents=tuple(declared.agents),
        tree=tree,
        separator=declared.separator,
        aggregate=aggregate,
        on_error=declared.on_error,
        max_concurrency=declared.max_concurrency,
    )


def _lost_members(declared: WorkflowFile, node: Node) -> bool:
    """Whether a workflow says what it runs, and nothing of that is valid."""
    if declared.agents or declared.flow is not None or declared.steps is not None:
        return False
    written = node.entries
    return "flow" in written or "steps" in written or ("agents" in written and written["agents"].data() != [])


def check_flows(files: ProjectFiles, names: Names) -> None:
    """Look up every name that flows refer to, and check that they can run."""
    for flow, at in every_caller(names.taken):
        if not isinstance(flow, FlowSpec):
            continue
        registered = names.taken.get(flow.name)
        node = files.node.at(("flows", flow.name)) if files.node is not None else None
        where = partial(
            _place, node if registered is not None and registered.value is flow else None, at or Location("")
        )
        _look_up(flow, names, where)
        conditions = find_condition_faults_of(flow, names.taken)
        for fault in (*find_own_faults(flow), *find_flow_faults(flow, names.taken), *conditions):
            names.report(fault.problem, where(fault.position))


def check_given_tools(
    spec: AgentSpec, tools: AgentTools, flows: Iterable[FlowSpec], names: Names, place: Location
) -> None:
    """Check that the tools with which an agent hands over and delegates don't clash with its others."""
    taken = {tool.name: tool.origin for tool in tools.tools}
    added = [(name, "`handoffs`") for name in transfer_tool_names(spec)]
    for flow in flows:
        lead = as_member(flow, flow.agents[0], names.taken) if flow.mode == "team" and flow.agents else None
        if lead is not None and lead.value is spec:
            added += [(delegate_name(worker), f"the team `{flow.name}`") for worker in flow.agents[1:]]
    for name, giver in added:
        if name in taken:
            names.report(clashing_tool(spec.name, name, taken[name], giver), place)
        elif len(name) > _LONGEST:
            names.report(long_given_name(name, giver, spec.name), place)


_LONGEST = int(NAME_PATTERN.partition("{0,")[2].partition("}")[0]) + 1


def _look_up(flow: FlowSpec, names: Names, place_of: Callable[[FlowPosition], Location]) -> None:
    for name, position in flow_positions(flow):
        where = place_of(position)
        if name in flow.members:
            found = as_member(flow, name, names.taken)
            if found is not None and found.kind != "agent" and _needs_agent(flow, position):
                names.report(wrong_kind(name, _noun(found), "an agent"), where)
        elif _needs_agent(flow, position):
            names.look_up(name, ("agent",), "an agent", where)
        else:
            names.look_up(name, ("agent", "tool", "flow"), "an agent, function or flow", where)


def _noun(found: Registered) -> str:
    return "function" if found.kind == "tool" else found.kind


def _needs_agent(flow: FlowSpec, position: FlowPosition) -> bool:
    return flow.mode == "handoff" or (flow.mode == "team" and position.key == "lead")


def _place(node: Node | None, place: Location, position: FlowPosition) -> Location:
    """The location of a position in a flow of the manifest; of the flow itself for one made in Python."""
    if node is None or not position.key:
        return place
    if position.start >= 0:
        expression = node.at(position.keys or (position.key,))
        if expression is None:
            return place
        start, end = offset_in_json(expression, position.start), offset_in_json(expression, position.end)
        return expression.source.place(start, max(end, start + 1))
    return node.place_of((position.key, position.index) if position.index >= 0 else (position.key,))

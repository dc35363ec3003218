"""Linking flows: from the manifest's declarations to `FlowSpec`s, and from what is wrong to places in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.syntax.flow_expression import FlowSyntaxError, FlowTree, offset_in_json, parse_flow
from llm_do.linker.analysis.inventory import AgentTools
from llm_do.linker.analysis.names import Names
from llm_do.linker.checks.flow_checks import (
    FlowPosition,
    delegate_name,
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
    from llm_do.formats.shared_parts import FlowFile
    from llm_do.formats.syntax.source import Node

__all__ = ["check_flows", "check_given_tools", "register_flows"]


def register_flows(files: ProjectFiles, names: Names, references: References) -> None:
    """Give the manifest's flows their names; what can't be read of one is told, and the flow left out."""
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
    if declared.flow is not None:
        try:
            tree = parse_flow(declared.flow)
        except FlowSyntaxError as error:
            spot = FlowPosition("flow", start=error.start, end=error.end)
            node = files.node.at(("flows", name)) if files.node is not None else None
            names.fault("LD501", error.message, _place(node, place, spot), error.hint)
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


def check_flows(files: ProjectFiles, names: Names) -> None:
    """Look up every name that flows refer to, and see that they can run."""
    for flow, at in every_caller(names.taken):
        if not isinstance(flow, FlowSpec):
            continue
        registered = names.taken.get(flow.name)
        node = files.node.at(("flows", flow.name)) if files.node is not None else None
        where = partial(
            _place, node if registered is not None and registered.value is flow else None, at or Location("")
        )
        _look_up(flow, names, where)
        for fault in (*find_own_faults(flow), *find_flow_faults(flow, names.taken)):
            names.fault(fault.code, fault.message, where(fault.spot), fault.hint)


def check_given_tools(
    spec: AgentSpec, tools: AgentTools, flows: Iterable[FlowSpec], names: Names, place: Location
) -> None:
    """See that the tools with which an agent hands over and delegates clash with none of its others."""
    taken = {tool.name: tool.origin for tool in tools.tools}
    given = [(name, "`handoffs`") for name in transfer_tool_names(spec)]
    for flow in flows:
        lead = as_member(flow, flow.agents[0], names.taken) if flow.mode == "team" and flow.agents else None
        if lead is not None and lead.value is spec:
            given += [(delegate_name(worker), f"the team `{flow.name}`") for worker in flow.agents[1:]]
    for name, giver in given:
        if name in taken:
            message = f"`{spec.name}` has a tool called `{name}` ({taken[name]}), and {giver} gives it one of that name"
            names.fault("LD507", message, place, "rename the tool, or give its toolset a prefix")
        elif len(name) > _LONGEST:
            message = f"`{name}`, which {giver} gives `{spec.name}`, can't be the name of a tool"
            names.fault("LD403", message, place, "shorten the agent's name")


_LONGEST = int(NAME_PATTERN.partition("{0,")[2].partition("}")[0]) + 1


def _look_up(flow: FlowSpec, names: Names, place_of: Callable[[FlowPosition], Location]) -> None:
    for name, spot in flow_positions(flow):
        where = place_of(spot)
        if name in flow.members:
            found = as_member(flow, name, names.taken)
            if found is not None and found.kind != "agent" and _needs_agent(flow, spot):
                names.fault("LD204", f"`{name}` is a {_noun(found)}, not an agent", where)
        elif _needs_agent(flow, spot):
            names.look_up(name, ("agent",), "an agent", where)
        else:
            names.look_up(name, ("agent", "tool", "flow"), "an agent, function or flow", where)


def _noun(found: Registered) -> str:
    return "function" if found.kind == "tool" else found.kind


def _needs_agent(flow: FlowSpec, spot: FlowPosition) -> bool:
    return flow.mode == "handoff" or (flow.mode == "team" and spot.key == "lead")


def _place(node: Node | None, place: Location, spot: FlowPosition) -> Location:
    """The place of a spot in a flow of the manifest; of the flow itself for one that Python makes."""
    if node is None or not spot.key:
        return place
    if spot.start >= 0:
        expression = node.at((spot.key,))
        if expression is None:
            return place
        start, end = offset_in_json(expression, spot.start), offset_in_json(expression, spot.end)
        return expression.source.place(start, max(end, start + 1))
    return node.place_of((spot.key, spot.index) if spot.index >= 0 else (spot.key,))

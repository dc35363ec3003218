"""A project as a graph: who calls whom, with which tools, and what policy decides; as a tree.

`graph_data` makes JSON data from a linked project; the rest, and `llm_do.ui.reports.graph_languages`, draw such data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do.formats.syntax.flow_expression import format_flow
from llm_do.linker.analysis.inventory import AgentTools
from llm_do.linker.analysis.permissions import Permission, permission_for
from llm_do.linker.proofs.call_graph import CallGraph
from llm_do.project.agent_spec import AgentSpec, skills_of
from llm_do.project.capabilities import capability_names
from llm_do.project.flow_spec import FlowSpec, as_member, callers_by_name, step_conditions
from llm_do.project.title import title
from llm_do.text.sanitizer import sanitize
from llm_do.ui.reports.graph_languages import OUTCOMES, tools_besides
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import pad, text_width

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["graph_data", "permissions", "tree"]

_STYLE_OF = {"allow": "good", "ask": "warn", "deny": "bad", "unknown": "warn"}
"""Effect to style."""


def graph_data(project: Project) -> dict[str, Any]:
    """A project's agents and their tools, each with its effective permission, along every call path."""
    graph, callers = CallGraph(project), callers_by_name(project.registry)
    specs = {name: item for name, item in callers.items() if isinstance(item, AgentSpec)}
    flows = {name: _flow(item, project) for name, item in callers.items() if isinstance(item, FlowSpec)}
    tools = {name: graph.inventory.of(spec) for name, spec in specs.items()}
    roots = _roots(graph, flows)
    paths = dict(_paths(graph, roots))
    first: dict[str, str] = {}
    for path, name in paths.items():
        if name not in first or path.count("/") < first[name].count("/"):
            first[name] = path
    return {
        "name": project.name,
        "description": project.description,
        "entry": {"kind": project.entry.kind, "name": project.entry.name},
        "roots": roots,
        "agents": [
            _agent(project, specs[name], tools[name], first.get(name, name))
            for name in dict.fromkeys((*paths.values(), *specs))
        ],
        "flows": [*flows.values()],
        "paths": [
            {"path": path, "agent": name, "tools": _permissions(project, tools[name], path, name)}
            for path, name in paths.items()
        ],
        "policy_function": project.policy.function,
        "assertions": _proofs(project),
    }


def _proofs(project: Project) -> list[dict[str, object]]:
    """What is known about the project's assertions."""
    if not project.assertions:
        return []
    from llm_do.linker.checks.assertion_checks import prove_assertions

    return [proof.to_dict() for proof in prove_assertions(project)]


def _flow(flow: FlowSpec, project: Project) -> dict[str, Any]:
    members = [(name, as_member(flow, name, project.registry)) for name in flow.names()]
    conditions: Mapping[str, str] = step_conditions(flow) if flow.mode == "workflow" else {}
    return {
        "name": flow.name,
        "mode": flow.mode,
        "flow": format_flow(flow.steps) if flow.mode == "workflow" else None,
        "description": flow.description,
        "members": [
            {"name": name, "kind": found.kind if found is not None else "tool", "condition": conditions.get(name)}
            for name, found in members
        ],
    }


def _roots(graph: CallGraph, flows: Mapping[str, object]) -> list[str]:
    """Where the picture begins: the entry, or for a function what no agent and no flow calls."""
    if graph.entry.kind != "function":
        return [graph.entry.name]
    callers = [node for node in graph.named if node.kind != "function"]
    leads = [edge.target for node in callers if node.kind == "flow" for edge in graph.edges(node)]
    pairs = [(node, edge.target) for node in (*callers, *leads) for edge in graph.edges(node)]
    called = {target.name for node, target in pairs if target.kind in ("agent", "flow") and target.name != node.name}
    flows_first = sorted((node.name for node in callers), key=lambda name: name not in flows)
    return [name for name in flows_first if name not in called] or flows_first


def _paths(graph: CallGraph, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The call paths of agents from these on, each with the agent's name."""
    above = (graph.entry.name,) if graph.entry.kind == "function" else ()
    for root in (node for name in roots for node in graph.named if node.name == name and node.kind != "function"):
        for way in graph.paths(root, graph.project.settings.max_depth):
            path, node = (*above, root.name), root
            for edge in way:
                path, node = edge.path_after(path), edge.target
            if node.kind == "agent":
                yield "/".join(path), node.name


def _name(target: str | AgentSpec) -> str:
    return target if isinstance(target, str) else target.name


def _agent(project: Project, spec: AgentSpec, tools: AgentTools, path: str) -> dict[str, Any]:
    model = spec.model or project.model
    names = (
        [model] if isinstance(model, str) else [str(name) for name in model] if isinstance(model, tuple | list) else []
    )
    return {
        "name": spec.name,
        "description": spec.description,
        "models": names,
        "tools": _permissions(project, tools, path, spec.name),
        "open": [origin.name for origin in tools.open],
        "server_side": [tool.tool_type for tool in spec.server_side_tools],
        "capabilities": capability_names(spec),
        "skills": [skill.name for skill in skills_of(spec)],
        "handoffs": [_name(target) for target in spec.handoffs],
    }


def _permissions(project: Project, tools: AgentTools, path: str, agent: str) -> list[dict[str, Any]]:
    found = (permission_for(tool, path, project.policy, project.settings, agent=agent) for tool in tools.tools)
    return [_right(right, project.policy_function is not None) for right in found]


def _right(right: Permission, asked: bool) -> dict[str, Any]:
    decision = right.decision
    rules = [{"effect": rule.effect, "rule": rule.text, "place": rule.place} for rule in right.rules]
    return {
        "name": right.tool.name,
        "kind": right.tool.kind,
        "toolset": right.tool.toolset,
        "agent": right.tool.tool if right.tool.kind == "agent" and right.tool.toolset is None else None,
        "flow": right.tool.tool if right.tool.kind == "flow" else None,
        "effect": right.effect,
        "source": decision.source,
        "reason": decision.reason,
        "rule": decision.rule,
        "place": decision.place,
        "rules": rules,
        "depends": right.depends or asked,
    }


def tree(data: Mapping[str, Any], *, color: bool = False) -> str:
    """Draw the agents and flows as a tree; a caller that is its own ancestor is drawn once and marked."""
    nodes: Mapping[str, Any] = {node["name"]: node for node in (*data["agents"], *data["flows"])}
    lines = _heading(data, color)
    if data["entry"]["kind"] == "function":
        note = paint("  its calls are only known at run time; it can reach:", "quiet", color=color)
        lines.append(paint(f"{sanitize(data['entry']['name'])}()", "name", color=color) + note)
    drawn: set[str] = set()
    for root in data["roots"]:
        lines += _branch(nodes, root, "", (), drawn, color)
    left = [name for name in nodes if name not in drawn]
    if left:
        lines.append(paint(f"not reached: {', '.join(left)}", "quiet", color=color))
    notes: list[str] = []
    if any(tool["rules"] for name in drawn for tool in nodes[name].get("tools", ())):
        notes.append("* rules decide by the arguments")
    if data["policy_function"]:
        notes.append(f"{sanitize(data['policy_function'])} may decide any call")
    if notes:
        lines += ["", *(paint(note, "quiet", color=color) for note in notes)]
    return "".join(f"{line}\n" for line in lines)


def _heading(data: Mapping[str, Any], color: bool) -> list[str]:
    """The project's title as a line, if it has one."""
    text = title(data["name"], data["description"])
    return [paint(sanitize(text), "quiet", color=color)] if text is not None else []


def _branch(
    nodes: Mapping[str, Any], name: str, indent: str, above: tuple[str, ...], drawn: set[str], color: bool
) -> Iterator[str]:
    if not above:
        yield _title(nodes[name], color)
    drawn.add(name)
    rows = _rows(nodes, nodes[name], color)
    for index, (text, callee) in enumerate(rows):
        last = index == len(rows) - 1
        mark = ""
        if callee is not None and callee in (*above, name):
            mark, callee = "  ↺ recursion", None
        elif callee in drawn:
            mark, callee = "  ↑ shown above", None
        yield f"{indent}{'└─ ' if last else '├─ '}{text}{paint(mark, 'quiet', color=color)}"
        if callee is not None:
            yield from _branch(nodes, callee, indent + ("   " if last else "│  "), (*above, name), drawn, color)


def _title(node: Mapping[str, Any], color: bool) -> str:
    """An agent's name and its models, or a flow's name and its mode."""
    note = (
        ", ".join(node["models"]) if "models" in node else node["mode"] + (f": {node['flow']}" if node["flow"] else "")
    )
    return paint(node["name"], "name", color=color) + paint(f"  {sanitize(note)}" if note else "", "quiet", color=color)


def _rows(nodes: Mapping[str, Any], node: Mapping[str, Any], color: bool) -> list[tuple[str, str | None]]:
    """The rows below an agent or a flow: a line, and the agent or flow to draw below it."""

    def quiet(text: str) -> str:
        return paint(f"  {text}", "quiet", color=color)

    if "mode" in node:
        return [
            (_title(nodes[member["name"]], color) + _when(member, color), member["name"])
            if member["kind"] != "tool" and member["name"] in nodes
            else (
                sanitize(member["name"]) + quiet(_STEPS.get(member["kind"], "agent")) + _when(member, color),
                None,
            )
            for member in node["members"]
        ]
    rows: list[tuple[str, str | None]] = []
    for tool in node["tools"]:
        source = quiet(sanitize(tool["toolset"])) if tool["toolset"] else ""
        callee = tool["agent"] or tool["flow"]
        rows.append((f"{sanitize(tool['name'])}  {_effect(tool, color)}{source}", callee if callee in nodes else None))
    rows += [(_marked(name, effect, color) + quiet(note), None) for name, effect, note in tools_besides(node)]
    rows += [(name + quiet("skill"), None) for name in node["skills"]]
    return rows + [
        (f"{target}{quiet('handed over to')}", target if target in nodes else None) for target in node["handoffs"]
    ]


def _marked(name: str, effect: str, color: bool) -> str:
    return f"{sanitize(name)}  {paint(effect, _STYLE_OF[effect], color=color)}"


def _when(member: Mapping[str, Any], color: bool) -> str:
    """When a conditional or repeated step runs."""
    return paint(f"  {sanitize(member['condition'])}", "quiet", color=color) if member["condition"] is not None else ""


_STEPS = {"tool": "function", "flow": "flow"}


def _effect(tool: Mapping[str, Any], color: bool) -> str:
    """The effect for a tool, with a star if its arguments may change it."""
    return paint(tool["effect"] + ("*" if tool["rules"] else ""), _STYLE_OF[tool["effect"]], color=color)


def permissions(data: Mapping[str, Any], *, color: bool = False) -> str:
    """The effective permissions along every call path: the effect of an ordinary call, its reason, and exceptions."""
    lines = _heading(data, color)
    shown: dict[str, list[tuple[str, Any]]] = {}
    for path in data["paths"]:
        tools = [{**tool, "reason": ""} for tool in path["tools"]]
        same = next((first for first, known in shown.get(path["agent"], []) if known == tools), None)
        title = paint(sanitize(path["path"]), "name", color=color)
        if same is not None:
            lines.append(title + paint(f"  as {sanitize(same)}", "quiet", color=color))
            continue
        shown.setdefault(path["agent"], []).append((path["path"], tools))
        lines.append(title if path["tools"] else title + paint("  no tools", "quiet", color=color))
        longest = max((text_width(sanitize(tool["name"])) for tool in path["tools"]), default=0)
        for tool in path["tools"]:
            lines += _permission(tool, longest, color)
    for agent in data["agents"]:
        lines += [
            f"{sanitize(agent['name'])}: {_marked(name, effect, color)}" + paint(f"  {note}", "quiet", color=color)
            for name, effect, note in tools_besides(agent)
        ]
    if data["policy_function"]:
        lines.append(f"{sanitize(data['policy_function'])} may decide any call")
    lines += _assertions(data, color)
    return "".join(f"{line}\n" for line in lines)


def _assertions(data: Mapping[str, Any], color: bool) -> Iterator[str]:
    """The assertions, each with whether it is proved."""
    if data["assertions"]:
        yield ""
    for proof in data["assertions"]:
        style = "good" if proof["outcome"] == "holds" else "warn"
        why = paint(f"  {sanitize(proof['reason'])}", "quiet", color=color) if proof["reason"] else ""
        yield f"{paint(OUTCOMES[proof['outcome']], style, color=color)}  {sanitize(proof['assert'])}{why}"


def _permission(tool: Mapping[str, Any], longest: int, color: bool) -> Iterator[str]:
    effect = paint(f"{tool['effect']:<5}", _STYLE_OF[tool["effect"]], color=color)
    why = f"by the rule {tool['rule']}" if tool["rule"] else _WHY[tool["source"]]
    place = f"  {tool['place']}" if tool["place"] else ""
    yield f"  {pad(sanitize(tool['name']), longest)}  {effect}  {sanitize(why)}{paint(place, 'quiet', color=color)}"
    for rule in tool["rules"]:
        effect = paint(f"{rule['effect']:<5}", _STYLE_OF[rule["effect"]], color=color)
        yield f"  {' ' * longest}  {effect}  for {sanitize(rule['rule'])}" + paint(
            f"  {rule['place']}", "quiet", color=color
        )


_WHY: Mapping[str, str] = {
    "toolset": "by its toolset, for ordinary arguments",
    "blocked": "its toolset blocks it",
    "metadata": "by its own metadata",
    "default": "by default",
}

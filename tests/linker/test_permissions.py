"""Effective permissions are what a run decides, on every path that leads to an agent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from llm_do import AgentSpec, Runtime
from llm_do.linker.analysis.inventory import Inventory
from llm_do.linker.analysis.permissions import permission_for
from llm_do.linker.proofs.call_graph import CallGraph
from llm_do.linker.proofs.escalations import find_escalations
from llm_do.policy.rules import build_policy
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.project import EntrySpec, Overrides, Project, RuntimeSettings
from llm_do.project.registry import Registered, Registry
from llm_do.ui.reports.graph_languages import dot, mermaid
from llm_do.ui.reports.project_graph import graph_data, permissions, tree
from tests.support.runs import project_of
from tests.support.scripted import call, script


def project(*specs: AgentSpec, approvals: dict[str, Any] | None = None, **settings: Any) -> Project:
    names = {spec.name: Registered(spec.name, "agent", spec) for spec in specs}
    policy, faults = build_policy(approvals or {})
    assert not faults
    return Project(
        Path(), EntrySpec("agent", specs[0].name), Registry(names), policy=policy, settings=RuntimeSettings(**settings)
    )


MAIN = AgentSpec("main", toolsets=["writer", "filesystem_project_ro"])
WRITER = AgentSpec("writer", toolsets=["filesystem_project", "critic"])
CRITIC = AgentSpec("critic", toolsets=["writer"])


def effects(data: dict[str, Any], path: str) -> dict[str, str]:
    (found,) = [item for item in data["paths"] if item["path"] == path]
    return {tool["name"]: tool["effect"] for tool in found["tools"]}


def test_permissions_follow_the_rules_of_the_agent_and_of_its_path() -> None:
    data = graph_data(
        project(
            MAIN,
            WRITER,
            CRITIC,
            approvals={
                "deny": ["delete_file"],
                "allow": ["main/writer:write_file", "writer:edit_file"],
                "ask": ["main:read_file"],
            },
        )
    )
    assert effects(data, "main") == {
        "writer": "allow",
        "read_file": "ask",
        "list_files": "allow",
        "search_files": "allow",
    }
    writer = effects(data, "main/writer")
    assert [writer[name] for name in ("write_file", "edit_file", "delete_file", "move_file", "critic")] == [
        "allow",
        "allow",
        "deny",
        "ask",
        "allow",
    ]


def test_a_permission_is_what_a_run_decides() -> None:
    def send(to: str) -> str:
        return to

    for approvals in ({}, {"allow": ["send"]}, {"deny": ["send"]}, {"default": "allow"}, {"ask": ["send"]}):
        policy, _ = build_policy(approvals)
        spec = AgentSpec("main", tools=["send"], model=script(call("send", to="ann"), "done"))
        made = project_of([spec], tools={"send": send}, policy=policy)
        (tool,) = Inventory(made.registry).of(spec).tools
        right = permission_for(tool, "main", policy, made.settings)
        result = asyncio.run(Runtime(made, approvals="reject_all").execute("go"))
        assert bool(result.denials) == (right.effect != "allow"), approvals


def test_approval_of_agent_calls_is_shown_with_its_exceptions() -> None:
    made = project(
        MAIN,
        WRITER,
        CRITIC,
        agent_calls_require_approval=True,
        agent_approval_overrides={"critic": Overrides(calls_require_approval=False)},
    )
    data = graph_data(made)
    assert effects(data, "main")["writer"] == "ask"
    assert effects(data, "main/writer")["critic"] == "allow"


def test_paths_end_at_recursion_and_at_the_maximum_depth() -> None:
    def paths(deepest: int) -> list[str]:
        graph = CallGraph(project(MAIN, WRITER, CRITIC))
        return ["/".join(edge.target.name for edge in way) for way in graph.paths(graph.entry, deepest)]

    assert paths(5) == ["", "writer", "writer/critic"]
    assert paths(2) == ["", "writer"]


def test_a_denied_tool_available_through_another_agent_is_found() -> None:
    def found(**approvals: Any) -> list[tuple[str, str]]:
        made = project(MAIN, WRITER, CRITIC, approvals=approvals)
        return [(item.path, item.tool) for item in find_escalations(made)]

    gate = ["main:write_file"]
    assert found(ask=gate, allow=["writer:write_file"]) == [("main/writer", "write_file")]
    assert found(deny=gate, allow=["write_file"]) == [("main/writer", "write_file")]
    assert found(ask=gate) == []
    assert found(ask=[*gate, "main:writer"], allow=["writer:write_file"]) == []
    assert found(ask=["write_file"], allow=["writer:write_file"]) == []


def test_a_denied_tool_available_through_a_flow_is_found(tmp_path: Path) -> None:
    names = {
        "main": AgentSpec("main", toolsets=["filesystem_project", "pipe"]),
        "writer": AgentSpec("writer", toolsets=["filesystem_project"]),
    }
    registered = {name: Registered(name, "agent", spec) for name, spec in names.items()}
    registered["pipe"] = Registered("pipe", "flow", FlowSpec("pipe", agents=("writer",)))

    def found(**approvals: Any) -> list[tuple[str, str]]:
        policy, _ = build_policy(approvals)
        made = Project(tmp_path, EntrySpec("agent", "main"), Registry(registered), policy=policy)
        return [(item.path, item.tool) for item in find_escalations(made)]

    gate = {"deny": ["main:write_file"], "allow": ["writer:write_file"]}
    assert found(**gate, ask=["pipe"]) == []
    assert found(deny=gate["deny"], allow=[*gate["allow"], "pipe"]) == [("main/pipe/1/writer", "write_file")]


def test_the_tree_shows_recursion_and_draws_an_agent_once() -> None:
    text = tree(graph_data(project(MAIN, WRITER, CRITIC, AgentSpec("lonely"))))
    assert "critic  allow\n" in text
    assert "writer  allow  ↺ recursion" in text
    assert text.endswith("not reached: lonely\n")
    assert "\x1b" not in text


def with_flows(entry: EntrySpec, root: Path) -> Project:
    """Agents and two flows: `d` runs one of them, and nothing calls the other one or `e`."""
    specs = [
        AgentSpec("a"),
        AgentSpec("b", toolsets=["filesystem_project_ro"]),
        AgentSpec("c", handoffs=["d"]),
        AgentSpec("d", toolsets=["pipe"]),
        AgentSpec("e"),
    ]
    names = {spec.name: Registered(spec.name, "agent", spec) for spec in specs}
    flows = [FlowSpec("pipe", agents=("a", "b")), FlowSpec("desk", "handoff", ("c",))]
    names |= {flow.name: Registered(flow.name, "flow", flow) for flow in flows}
    policy, _ = build_policy({"policy": "rules.py:decide"})
    return Project(root, entry, Registry(names), policy=policy)


def test_an_entry_flow_is_drawn_above_its_members(tmp_path: Path) -> None:
    data = graph_data(with_flows(EntrySpec("flow", "pipe"), tmp_path))

    assert tree(data).splitlines() == [
        "pipe  workflow: a >> b",
        "├─ a",
        "└─ b",
        "   ├─ read_file  allow  filesystem_project_ro",
        "   ├─ list_files  allow  filesystem_project_ro",
        "   └─ search_files  allow  filesystem_project_ro",
        "not reached: c, d, e, desk",
        "",
        "rules.py:decide may decide any call",
    ]
    assert [way["path"] for way in data["paths"]] == ["pipe/1/a", "pipe/2/b"]


def test_an_entry_function_reaches_agents_that_nothing_else_calls(tmp_path: Path) -> None:
    data = graph_data(with_flows(EntrySpec("function", "main"), tmp_path))

    assert data["roots"] == ["desk", "e"]
    assert tree(data).splitlines()[:8] == [
        "main()  its calls are only known at run time; it can reach:",
        "desk  handoff",
        "└─ c",
        "   └─ d  handed over to",
        "      └─ pipe  allow",
        "         ├─ a",
        "         └─ b",
        "            ├─ read_file  allow  filesystem_project_ro",
    ]
    assert "not reached" not in tree(data)
    picture = mermaid(data)
    assert picture.count("-.->|at run time|") == 2
    assert picture.count('{{"desk"}}') == picture.count('{{"pipe"}}') == 1
    assert dot(data).count('[label="runs"') == 4


def test_permissions_name_the_rule_and_their_exceptions() -> None:
    made = project(MAIN, WRITER, CRITIC, approvals={"deny": ["write_file(secret/**)"], "allow": ["writer:write_file"]})
    text = permissions(graph_data(made))
    assert "allow  by the rule writer:write_file" in text
    assert "deny   for write_file(secret/**)" in text


def test_graphs_can_contain_any_name() -> None:
    odd = AgentSpec("main", toolsets=[ToolsetNamed('a "b" ]--> c\n%%')])
    data = graph_data(project(odd))
    assert mermaid(data).count("\n") == 4
    assert all(line.count('"') in (0, 2) for line in mermaid(data).splitlines())
    assert dot(data).count("\n") == 6


class ToolsetNamed:
    """A factory whose name is not a valid name."""

    def __init__(self, name: str) -> None:
        self.id = name

    def __call__(self, ctx: object) -> None:
        return None

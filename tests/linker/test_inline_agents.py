"""Agents that code passes to others, in `toolsets`, `handoffs` or a flow, are check_files like named ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from llm_do.linker.checks.rule_checks import find_idle_pattern
from llm_do.linker.linker import LinkReport
from llm_do.ui.reports.explanation import explain_data
from llm_do.ui.reports.project_graph import graph_data
from llm_do.ui.reports.tool_list import tools_data
from tests.linker.conftest import agent, manifest

CheckFiles = Callable[[Mapping[str, object]], LinkReport]

HOLDERS = {
    "in toolsets": "AGENTS = [AgentSpec('boss', toolsets=[INLINE])]",
    "in handoffs": "AGENTS = [AgentSpec('boss', handoffs=[INLINE])]",
    "deeper": "AGENTS = [AgentSpec('boss', toolsets=[AgentSpec('between', handoffs=[INLINE])])]",
    "in a flow in toolsets": "AGENTS = [AgentSpec('boss', toolsets=[Swarm([INLINE], name='flow')])]",
    "in a flow": "FLOWS = [Swarm([INLINE], name='boss')]",
    "in a flow of a flow": "FLOWS = [Swarm([Swarm([INLINE], name='inner')], name='boss')]",
}
CODE = """
from llm_do import AgentSpec, Swarm
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.gates import Gate
def add(a: int) -> int: "Add."; return a
def twice(a: int) -> int: "Double."; return a
twice.__name__ = 'add'
TOOLS = [add]
INLINE = AgentSpec('inline', {inline})
{holder}
"""


def link_inline(check_files: CheckFiles, inline: str, holder: str, **keys: object) -> LinkReport:
    return check_files(
        {
            "project.json": manifest(python_files=["tools.py"], **keys),
            "main.agent": agent("main", "tools: [add]\ntoolsets: [boss]"),
            "tools.py": CODE.format(inline=inline, holder=holder),
        }
    )


@pytest.mark.sample(14)
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    ("inline", "code"),
    [
        ("tools=['gone']", "LD201"),
        ("toolsets=['gone']", "LD201"),
        ("handoffs=['gone']", "LD201"),
        ("tools=[add, twice]", "LD402"),
        ("model='openai:'", "LD701"),
        ("tools=[add], states={'gone': Gate(requires=('x',))}", "LD413"),
        ("tools=[add], states={'add': Gate(requires=('x',))}", "LD410"),
    ],
)
def test_faults_of_an_inline_agent_are_reported_where_it_is_used(
    check_files: CheckFiles, inline: str, code: str, holder: str
) -> None:
    report = link_inline(check_files, inline, HOLDERS[holder])
    found = [item for item in report.diagnostics if item.code == code]
    assert [item.file for item in found] == ["tools.py"]
    assert found[0].line > 8


def test_a_rule_may_name_an_inline_agent(check_files: CheckFiles) -> None:
    holder = HOLDERS["in toolsets"]
    assert link_inline(check_files, "tools=[add]", holder, approvals={"deny": ["inline:add"]}).diagnostics == ()
    report = link_inline(check_files, "tools=[add]", holder, approvals={"deny": ["inline:sub"]})
    assert [item.code for item in report.diagnostics] == ["LD604"]


def test_tools_of_a_team_built_in_python_have_valid_names(check_files: CheckFiles) -> None:
    worker = "x" * 60
    team = "FLOWS = [FlowSpec('boss', 'team', agents=('inline', WORKER), members={'inline': INLINE, WORKER: WORK})]"
    holder = f"WORKER = '{worker}'\nWORK = AgentSpec(WORKER)\n{team}"
    report = link_inline(check_files, "tools=[add]", holder)
    assert [(item.code, item.file) for item in report.diagnostics if item.severity == "error"] == [
        ("LD403", "tools.py")
    ]


def test_a_fault_in_a_nested_flow_is_reported(check_files: CheckFiles) -> None:
    holder = "FLOWS = [Swarm([INLINE, FlowSpec('inner', agents=('gone', 'main', 'main'))], name='boss')]"
    report = link_inline(check_files, "tools=[add]", holder)
    assert sorted(item.code for item in report.diagnostics if item.severity == "error") == ["LD201", "LD502"]


def test_a_fault_of_an_agent_declared_in_python_is_reported_in_its_file(check_files: CheckFiles) -> None:
    report = link_inline(
        check_files, "tools=[add]", "AGENTS = [AgentSpec('boss', states={'sub': Gate(enables=('x',))})]"
    )
    assert [(item.code, item.file, item.line) for item in report.diagnostics] == [("LD413", "tools.py", 9)]


def test_an_inline_flow_is_a_tool_like_any_other(check_files: CheckFiles) -> None:
    report = link_inline(
        check_files,
        "tools=[add]",
        "AGENTS = [AgentSpec('boss', tools=['add'], toolsets=[Swarm([INLINE], name='add')])]",
    )
    assert [item.code for item in report.diagnostics] == ["LD402"]


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_an_inline_agent_lists_counts_as_used_and_is_drawn(check_files: CheckFiles, holder: str) -> None:
    report = check_files(
        {
            "project.json": manifest(python_files=["tools.py"], toolsets={"files": {"type": "filesystem"}}),
            "main.agent": agent("main", "tools: [add]\ntoolsets: [boss]"),
            "proof.agent": agent("proof"),
            "tools.py": CODE.format(
                inline="toolsets=[''.join(['pro', 'of']), ''.join(['fi', 'les'])]", holder=HOLDERS[holder]
            ),
        }
    )
    assert report.diagnostics == ()
    assert report.project is not None

    drawn = graph_data(report.project)
    shown = {each["name"]: {tool["name"] for tool in each["tools"]} for each in drawn["agents"]}
    assert {"proof", "write_file"} <= shown["inline"]
    assert any(way["agent"] == "proof" for way in drawn["paths"]) or "handoffs" in holder or holder == "deeper"
    assert find_idle_pattern("inline:write_file", report.project) is None


def test_an_inline_agents_tools_are_listed_and_explained(check_files: CheckFiles) -> None:
    project = link_inline(check_files, "tools=[add]", HOLDERS["in toolsets"]).project
    assert project is not None

    (listed,) = tools_data(project, "inline")["agents"]
    assert [tool["name"] for tool in listed["tools"]] == ["add"]
    shown = explain_data(project, ["inline", "add", "a=1"])
    assert (shown["path"], shown["args"], shown["effect"]) == ("main/boss/inline", {"a": 1}, "ask")

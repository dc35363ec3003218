"""`tools --connect` asks servers for their tools; `tools`, `graph`, `explain` and `check` then know them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project
from llm_do.formats.server_listings import FILE, read_listings
from llm_do.linker.linker import check_project
from llm_do.toolsets.mcp.listing import list_servers
from llm_do.ui.reports.explanation import explain_data
from llm_do.ui.reports.project_graph import graph_data
from llm_do.ui.reports.tool_list import tool_lines, tools_data
from tests.cli.cli_processes import run_forked

SERVER = str(Path(__file__).parent / "mcp_servers" / "plain_server.py")


def project_in(root: Path, mode: str = "well", *, listed: str = "small", **options: Any) -> Project:
    command = [sys.executable, SERVER, mode]
    servers = {"small": {"type": "mcp", "command": command, "timeout": 60, **options}}
    manifest = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "toolsets": servers,
        "approvals": {"allow": ["small_add(a=1)"]},
    }
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "main.agent").write_text(f"---\nname: main\nmodel: test\ntoolsets: [{listed}]\n---\nGo.\n")
    return Project.load(root)


def names(project: Project) -> list[str]:
    return [tool["name"] for tool in tools_data(project)["agents"][0]["tools"]]


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A project whose server has been asked."""
    asyncio.run(list_servers(project_in(tmp_path, "broken")))
    return tmp_path


def test_a_server_that_was_asked_is_known_to_every_report(asked: Path) -> None:
    project = project_in(asked, "broken")

    data = tools_data(project)
    (main,) = data["agents"]
    tools = {tool["name"]: tool for tool in main["tools"]}
    assert list(tools["small_add"]["parameters"]["properties"]) == ["a", "b"]
    assert "small_bad_type" not in tools
    assert main["open"] == ["small"]
    assert "  small: its tools are listed as it was last asked" in list(tool_lines(data))

    drawn = {tool["name"]: tool for tool in graph_data(project)["agents"][0]["tools"]}
    assert "small_add" in drawn
    explained = explain_data(project, ["small_add", "a=1", "b=2"])
    assert (explained["path"], explained["effect"]) == ("main", "allow")
    assert explain_data(project, ["small_add", "a=2", "b=2"])["effect"] == "ask"


def test_names_are_those_of_a_run(asked: Path) -> None:
    project = project_in(asked, "broken", listed="small: {prefix: s, include: [add, '3d']}")
    assert sorted(names(project)) == ["s_3d", "s_add"]
    assert names(project_in(asked, "broken", include=["add"])) == ["small_add"]


def test_a_server_that_is_configured_otherwise_is_unknown_again(asked: Path) -> None:
    assert names(project_in(asked, "well")) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"servers": {"small": 1}}', '{"servers": {"small": {"tools": [1]}}}']
)
def test_a_damaged_file_is_ignored(asked: Path, text: str) -> None:
    (asked / ".llm-do" / FILE).write_text(text)
    assert names(project_in(asked, "broken")) == []


def test_a_rule_about_an_argument_that_a_known_tool_does_not_have_is_still_allowed_to_speak(asked: Path) -> None:
    project_in(asked, "broken")
    assert [item.code for item in check_project(asked).diagnostics] == []


def test_one_server_that_fails_costs_no_other_its_place(tmp_path: Path) -> None:
    project_in(tmp_path)
    manifest = json.loads((tmp_path / "project.json").read_text())
    manifest["toolsets"]["bad"] = {"type": "mcp", "command": [sys.executable, "-c", "print('hello')"], "timeout": 60}
    manifest["toolsets"]["docs"] = {"type": "filesystem"}
    (tmp_path / "project.json").write_text(json.dumps(manifest))

    found = asyncio.run(list_servers(Project.load(tmp_path)))

    assert sorted(found) == ["bad", "small"]
    assert "doesn't speak MCP: it printed 'hello'" in str(found["bad"][0])
    assert list(read_listings((tmp_path / ".llm-do" / FILE).read_text())) == ["small"]


@pytest.mark.slow
def test_the_command_connects_reports_and_remembers(tmp_path: Path) -> None:
    project_in(tmp_path, "broken")
    before = run_forked("tools", cwd=tmp_path)
    assert "its tools are only known at run time" in before.out
    done = run_forked("tools", "--connect", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "small_add(a: integer, b: integer)" in done.out
    assert "warning: small: bad_type is left out, its inputSchema can't be used" in done.err
    assert "small_add(" in run_forked("tools", cwd=tmp_path).out

"""An agent created by another has no more permissions than its creator: rules for the creator apply to it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

ANSWERS = """
agents:
  one:
  - tools: [{name: write_file, args: {path: one.txt, content: x}}]
  - tools: [{name: agent_create, args: {name: two, instructions: W, toolsets: [NAME]}}]
  - tools: [{name: agent_call, args: {name: two, input: go}}]
  - text: done
  two:
  - tools: [{name: write_file, args: {path: two.txt, content: x}}]
  - text: done
"""


def run(root: Path, *, approvals: Any = "approve_all", **rules: Any) -> list[str]:
    """Have `main` create `one`, and `one` create `two`; each tries to write. Return the files written."""
    (root / "made").mkdir()
    (root / "answers.yaml").write_text(ANSWERS.replace("NAME", "filesystem_project"))
    make = {"instructions": "Write.", "toolsets": ["filesystem_project", "dynamic_agents"]}
    answers = f"script:{root}/answers.yaml"
    main = agent(
        "main",
        script(
            call("agent_create", {"name": "one", **make}),
            call("agent_call", {"name": "one", "input": "go"}),
            call("write_file", path="main.txt", content="x"),
            call("writer", input="go"),
            "done",
        ),
        toolsets=["filesystem_project", "dynamic_agents", "writer"],
    )
    writer = agent(
        "writer", script(call("write_file", path="writer.txt", content="x"), "done"), toolsets=["filesystem_project"]
    )
    project = project_of([main, writer], root=root, generated_agents_dir=root / "made")
    runtime = Runtime(project, approvals=approvals, models={"one": answers, "two": answers}, **rules)
    result = carry_out(runtime)
    assert result.status in ("completed", "denied"), result.error
    return sorted(path.stem for path in root.glob("*.txt"))


def test_without_rules_everything_may_be_written(tmp_path: Path) -> None:
    assert run(tmp_path) == ["main", "one", "two", "writer"]


@pytest.mark.parametrize("rule", ["main:write_file", "main:write_file(**)", "ma?n:*_file"])
def test_denials_of_a_creator_apply_to_the_agents_it_creates(tmp_path: Path, rule: str) -> None:
    assert run(tmp_path, deny=[rule]) == ["writer"]


def test_denials_of_a_created_agent_do_not_apply_to_its_creator(tmp_path: Path) -> None:
    assert run(tmp_path, deny=["one:write_file"]) == ["main", "writer"]


def test_permissions_of_a_creator_do_not_extend_to_the_agents_it_creates(tmp_path: Path) -> None:
    allowed = ["agent_create", "main:write_file"]
    assert run(tmp_path, approvals="prompt", allow=allowed) == ["main"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("rule", ["[ot]*:write_file", "*/*:write_file", "main/**:write_file", "???:write_file"])
def test_an_agent_gains_no_permissions_by_naming_an_agent(tmp_path: Path, rule: str) -> None:
    rules = ["agent_create", rule]
    assert [name for name in run(tmp_path, approvals="reject_all", allow=rules) if name in ("one", "two")] == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ("*:write_file", ["main", "one", "two", "writer"]),
        ("one:write_file", ["one"]),
        ("main/one:write_file", ["one"]),
        ("main/*/two:write_file", ["two"]),
        ("w*:write_file", ["writer"]),
        ("main/w*:write_file", ["writer"]),
    ],
)
def test_a_rule_that_names_the_created_agent_or_also_its_creator_applies(
    tmp_path: Path, rule: str, written: list[str]
) -> None:
    assert run(tmp_path, approvals="reject_all", allow=["agent_create", rule]) == written

"""A rule that allows a command speaks of the directory it stands for, not of whatever lies at that name elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import Runtime
from llm_do.policy.proposals import narrowest_rule, proposed_rules
from llm_do.policy.values import ToolCallInfo
from llm_do.toolsets.shell import ShellToolset, shell_readonly
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.shell.support import configured, context, decision, traits

SCRIPT = "#!/bin/sh\ntouch ran-in-$(basename $PWD)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("home", "home/out"):
        path = tmp_path / folder / "go.sh"
        path.parent.mkdir()
        path.write_text(SCRIPT)
        path.chmod(0o755)
    return tmp_path / "home"


def ran(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("ran-in-*"))


def run_with(root: Path, toolset: FunctionToolset[Any], args: dict[str, Any], **options: Any) -> None:
    project = project_of([agent("main", script(call("shell", args), "end"), toolsets=[toolset])], root=root)
    carry_out(Runtime(project, approvals="prompt", **options))


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", ["./go.sh", "sh go.sh"])
@pytest.mark.parametrize("cwd", ["out", "out/../out", "./out/"])
def test_an_allowed_program_needs_approval_in_another_directory(root: Path, command: str, cwd: str) -> None:
    by_rule = configured(root, "sh")
    run_with(root, by_rule, {"command": command, "cwd": cwd}, allow=[f"shell({command})"])
    run_with(root, configured(root, "sh", allow=[command]), {"command": command, "cwd": cwd})
    words = {"pattern": command, "approval_required": False}
    run_with(root, ShellToolset({"rules": [words], "base_path": root}), {"command": command, "cwd": cwd})  # type: ignore[list-item]
    assert ran(root) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "rule",
    ["shell(command=./go.sh, cwd=out)", "shell(cwd=out)", "shell(cwd=*)", "shell", "shell(*)"],
)
def test_a_rule_may_name_the_directory(root: Path, rule: str) -> None:
    run_with(root, configured(root, "sh"), {"command": "./go.sh", "cwd": "out"}, allow=[rule])
    assert ran(root) == ["ran-in-out"]


@pytest.mark.slow
def test_the_default_directory_need_not_be_named(root: Path) -> None:
    for cwd in (None, ".", "out/.."):
        run_with(root, configured(root, "sh"), {"command": "./go.sh", "cwd": cwd}, allow=["shell(./go.sh)"])
        assert ran(root) == ["ran-in-home"]
        (root / "ran-in-home").unlink()
    run_with(root, configured(root, "sh", cwd="out", allow=["./go.sh"]), {"command": "./go.sh"})
    assert ran(root) == ["ran-in-out"]


def test_reading_in_a_folder_needs_no_approval(root: Path) -> None:
    assert decision(shell_readonly(context(root)), "cat go.sh", cwd="out").effect == "allow"
    assert decision(configured(root, "sh", allow=["cat *"]), "cat go.sh", cwd="out").effect == "allow"


def test_a_proposed_rule_names_the_directory_and_allows_the_call(root: Path) -> None:
    args = {"command": "sh -e 'go.sh' | head -n 2", "cwd": "out"}
    resolve = traits(configured(root, "sh")).resolve
    assert resolve is not None
    info = ToolCallInfo("shell", args, primary="command", resolved=resolve(args))
    hint = narrowest_rule(info)
    assert hint is not None
    assert "cwd=out" in hint
    assert proposed_rules(info)[0] == f"main:{hint}"


def test_a_rule_that_denies_a_command_denies_it_everywhere(root: Path) -> None:
    args = {"command": "./go.sh", "cwd": "out"}
    run_with(root, configured(root, "sh"), args, allow=["shell"], deny=["shell(./go.sh)"])
    assert ran(root) == []

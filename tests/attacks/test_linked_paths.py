"""A rule that denies a path can't be bypassed with another name: a link, its target, or the full path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, Runtime
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.shell.support import configured


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "releases" / "1").mkdir(parents=True)
    (tmp_path / "current").symlink_to("releases/1")
    (tmp_path / "note.md").symlink_to("current/note.md")
    return tmp_path


def denied(root: Path, deny: str, tool: str = "write_file", toolset: Any = "filesystem_project", **args: Any) -> int:
    main = agent("main", script(call(tool, args), "done"), toolsets=[toolset])
    runtime = Runtime(project_of([main], root=root), approvals="approve_all", deny=[deny])
    return len(carry_out(runtime).denials)


@pytest.mark.parametrize("rule", ["current", "current/**", "releases/1/*.md", "Current/new.md"])
@pytest.mark.parametrize("path", ["current/new.md", "./releases/../current/new.md", "{root}/current/new.md"])
def test_a_path_through_a_link_is_denied_by_each_of_its_names(root: Path, rule: str, path: str) -> None:
    assert denied(root, f"write_file({rule})", path=path.format(root=root), content="x") == 1
    assert not (root / "current" / "new.md").exists()


def test_a_chain_of_links_is_denied_by_each_of_its_names(root: Path) -> None:
    for rule in ("note.md", "current/note.md", "releases/**"):
        assert denied(root, f"write_file({rule})", path="note.md", content="x") == 1
    assert denied(root, "write_file(releases/2/**)", path="note.md", content="x") == 0


def test_the_directory_of_a_command_is_denied_by_each_of_its_names(root: Path) -> None:
    for rule in ("shell(cwd=current)", "shell(cwd=releases/**)"):
        toolset = configured(root, "sh")
        assert denied(root, rule, "shell", toolset, command="touch new", cwd="current") == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("rule", ["shell(cwd=current)", "shell(cwd=releases/**)", "shell(command=ls, cwd=releases/1)"])
@pytest.mark.parametrize("cwd", ["current", "./current", "releases/../current", "{root}/current/."])
def test_the_directory_counts_even_for_a_command_that_ignores_it(root: Path, rule: str, cwd: str) -> None:
    toolset = configured(root, "sh", allow=["ls *"])
    assert denied(root, rule, "shell", toolset, command="ls", cwd=cwd.format(root=root)) == 1
    assert denied(root, "shell(cwd=releases/2)", "shell", toolset, command="ls", cwd=cwd.format(root=root)) == 0


def test_the_default_directory_of_a_command_has_a_name_too(root: Path) -> None:
    toolset = configured(root, "sh", cwd="current")
    for rule in ("shell(cwd=current)", "shell(cwd=releases/1)"):
        assert denied(root, rule, "shell", toolset, command="ls") == 1
        assert denied(root, rule, "shell", toolset, command="ls", cwd=".") == 0


def test_a_directory_relinked_while_approval_is_pending_is_decided_again(root: Path) -> None:
    (root / "secret").mkdir()

    async def person(request: ApprovalRequest) -> ApprovalDecision:
        (root / "current").unlink()
        (root / "current").symlink_to("secret")
        return ApprovalDecision("once")

    toolset = configured(root, "sh")
    main = agent("main", script(call("shell", command="ls", cwd="current"), "done"), toolsets=[toolset])
    runtime = Runtime(project_of([main], root=root), approvals=person, deny=["shell(cwd=secret)"])
    assert [denial.rule for denial in carry_out(runtime).denials] == ["shell(cwd=secret)"]


@pytest.mark.parametrize("word", ["-fout", "-iFfout", "-3rfout"])
def test_no_rule_allows_a_link_out_of_the_project_in_an_options_tail(root: Path, word: str) -> None:
    (root / "out").symlink_to(root.parent)
    main = agent(
        "main",
        script(call("shell", command=f"grep {word} note.md"), "done"),
        toolsets=[configured(root, "sh")],
    )
    runtime = Runtime(project_of([main], root=root), approvals="prompt", allow=["shell(grep *)"])
    assert len(carry_out(runtime).denials) == 1

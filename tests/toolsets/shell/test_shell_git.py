"""Programs in a repository's own configuration don't run, and a repository elsewhere isn't read."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.errors import ToolError
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.toolsets.shell import shell_readonly
from tests.toolsets.shell.support import OFF, configured, context, decision, git, run

COMMANDS = [
    "git status",
    "git status -s",
    "git diff",
    "git diff HEAD",
    "git log -p",
    "git log -p -m --format=%GG%GS",
    "git log -G hello -p",
    "git log -1 --stat",
    "git show",
    "git show HEAD:notes.txt",
    "git diff --stat",
]


@pytest.fixture
def marker(project: Path) -> Path:
    """A repository whose configuration runs a program wherever it can; returns the file that the program creates."""
    marker = project.parent / "marker"
    evil = project.parent / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    evil.chmod(0o755)
    (project / ".git" / "hooks").mkdir()
    for hook in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        (project / ".git" / "hooks" / hook).write_text(evil.read_text())
        (project / ".git" / "hooks" / hook).chmod(0o755)
    for key, value in {
        "alias.status": f"!{evil}",
        "core.editor": str(evil),
        "core.fsmonitor": str(evil),
        "core.pager": str(evil),
        "pager.log": str(evil),
        "pager.status": str(evil),
        "core.sshCommand": str(evil),
        "diff.external": str(evil),
        "diff.evil.command": str(evil),
        "diff.evil.textconv": str(evil),
        "diff.evil.cachetextconv": "false",
        "filter.evil.clean": str(evil),
        "filter.evil.smudge": str(evil),
        "filter.evil.required": "true",
        "filter.Two Words.process": str(evil),
        "merge.evil.driver": str(evil),
        "gpg.program": str(evil),
        "gpg.ssh.program": str(evil),
        "log.showSignature": "true",
        "log.diffMerges": "remerge",
        "status.submoduleSummary": "true",
        "diff.submodule": "diff",
        "submodule.recurse": "true",
        "credential.helper": str(evil),
        "uploadpack.packObjectsHook": str(evil),
    }.items():
        git(project, "config", key, value)
    (project / ".gitattributes").write_text("*.txt diff=evil filter=evil merge=evil\n*.py filter=two\n")
    return marker


@pytest.fixture(params=["kernel", "arguments alone"])
def kernel(request: pytest.FixtureRequest) -> SandboxSpec:
    """Run the test with and without the kernel's enforcement."""
    return SandboxSpec() if request.param == "kernel" else OFF


@pytest.mark.sample(6)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_program_that_a_repository_configures_runs(
    project: Path, marker: Path, command: str, kernel: SandboxSpec
) -> None:
    shell = shell_readonly(context(project, sandbox=kernel))
    assert decision(shell, command).effect == "allow"
    result = run(shell, command)
    assert result["exit_code"] == 0, result
    assert not marker.exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["git status", "git diff", "git log -p", "git show"])
def test_no_program_that_a_repository_configures_runs_in_a_toolset_with_patterns(
    project: Path, marker: Path, command: str
) -> None:
    shell = configured(project, "git", allow=["git status", "git log *", "git diff *", "git show *"])
    assert run(shell, command)["exit_code"] == 0
    assert not marker.exists()


def test_the_hostile_repository_is_hostile(project: Path, marker: Path) -> None:
    git(project, "diff")
    assert marker.exists()


def test_submodules_are_not_entered(project: Path, marker: Path, kernel: SandboxSpec) -> None:
    sub = project / "sub"
    sub.mkdir()
    git(sub, "init", "-q")
    (sub / "a").write_text("a")
    git(sub, "add", ".")
    git(sub, "commit", "-q", "-m", "a")
    git(project, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "sub")
    git(sub, "config", "core.fsmonitor", str(project.parent / "evil"))
    (sub / "a").write_text("b")
    marker.unlink(missing_ok=True)
    shell = shell_readonly(context(project, sandbox=kernel))
    for command in ("git status", "git diff", "git diff HEAD"):
        run(shell, command)
    assert not marker.exists()


def test_a_bare_repository_in_a_folder_is_not_used(project: Path, marker: Path, kernel: SandboxSpec) -> None:
    bare = project / "data"
    bare.mkdir()
    git(bare, "init", "-q", "--bare", ".")
    git(bare, "config", "core.fsmonitor", str(project.parent / "evil"))
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", "..")
    run(shell_readonly(context(project, sandbox=kernel)), "git status", cwd="data")
    assert not marker.exists()


def test_reading_changes_nothing_in_the_repository(project: Path) -> None:
    before = (project / ".git" / "index").read_bytes()
    shell = shell_readonly(context(project))
    run(shell, "git status")
    run(shell, "git diff")
    assert (project / ".git" / "index").read_bytes() == before


def other_repository(project: Path) -> Path:
    other = project.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "private.txt").write_text("private words\n")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "private words")
    return other


@pytest.mark.sample(4)
@pytest.mark.parametrize("how", ["file", "link", "commondir", "worktree", "everything"])
def test_a_repository_elsewhere_is_not_read(project: Path, how: str, kernel: SandboxSpec) -> None:
    other = other_repository(project)
    folder = project / "vendored"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    if how in ("file", "link"):
        (folder / ".git").rename(project.parent / "unused")
    if how == "file":
        (folder / ".git").write_text(f"gitdir: {other / '.git'}\n")
    elif how == "link":
        (folder / ".git").symlink_to(other / ".git")
    elif how == "commondir":
        (folder / ".git" / "commondir").write_text(f"{other / '.git'}\n")
    elif how == "worktree":
        git(folder, "config", "core.worktree", str(other))
    else:
        git(folder, "config", "core.worktree", "/")
    shell = shell_readonly(context(project, sandbox=kernel))
    for command in ("git log -p", "git status", "git status -uall"):
        try:
            result = run(shell, command, cwd="vendored")
        except ToolError as error:
            result = {"exit_code": 1, "stderr": error.message}
        assert "private" not in str(result), result
        assert result["exit_code"] != 0


def test_a_project_inside_a_repository_can_read_its_history(project: Path, kernel: SandboxSpec) -> None:
    shell = shell_readonly(context(project / "src", sandbox=kernel))
    assert "First words" in run(shell, "git log")["stdout"]
    assert "print" in run(shell, "git show HEAD:./main.py")["stdout"]


def test_a_linked_work_tree_can_read_its_history(project: Path, kernel: SandboxSpec) -> None:
    tree = project.parent / "tree"
    git(project, "worktree", "add", "-q", str(tree), "HEAD")
    assert "First words" in run(shell_readonly(context(tree, sandbox=kernel)), "git log")["stdout"]


def test_without_a_repository_git_itself_fails(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run(shell_readonly(context(tmp_path / "empty")), "git status")
    assert result["exit_code"] == 128
    assert "not a git repository" in result["stderr"]

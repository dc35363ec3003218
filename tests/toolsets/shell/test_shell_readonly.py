"""`shell_readonly` is read-only: commands that run without approval only read, and only below the project's folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai import FunctionToolset

from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.launching_programs import INTERPRETERS, WRAPPERS
from llm_do.toolsets.shell import shell_readonly
from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from llm_do.toolsets.shell.readonly_programs import READING_PROGRAMS
from tests.support.tables import each_row
from tests.toolsets.shell.readonly_commands import ORDINARY, READS_ELSEWHERE, WRITES_OR_RUNS
from tests.toolsets.shell.support import OFF, context, decision, run


def output_of(result: dict[str, Any] | None) -> str:
    return json.dumps(result)


def run_without_approval(toolset: FunctionToolset[Any], command: str, **args: object) -> dict[str, Any] | None:
    """Run the command if it is allowed without a person; return None otherwise."""
    return run(toolset, command, **args) if decision(toolset, command, **args).effect == "allow" else None


@pytest.fixture
def shell(project: Path) -> FunctionToolset[Any]:
    return shell_readonly(context(project, "shell_readonly"))


@pytest.mark.slow
@each_row("command, expected", ORDINARY)
def test_ordinary_commands_run_without_approval(shell: FunctionToolset[Any], command: str, expected: str) -> None:
    assert decision(shell, command).effect == "allow", decision(shell, command).reason
    result = run(shell, command)
    assert re.search(expected, result["stdout"], re.MULTILINE), result
    hidden = "./.env: Permission denied"  # with Landlock
    assert [line for line in result["stderr"].splitlines() if hidden not in line] == []


def test_commands_that_only_read_are_allowed(tmp_path: Path) -> None:
    for name in ("README.md", "package.json", "src/main.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shell = shell_readonly(context(tmp_path))
    listed = (Path(__file__).parent / "reading_commands.txt").read_text(encoding="utf-8").splitlines()
    refused = [line for line in listed if not line.startswith("#") and decision(shell, line).effect != "allow"]
    assert refused == []
    assert len(listed) > 150


@pytest.mark.parametrize(
    "commands", [ORDINARY[::5], pytest.param(ORDINARY, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_ordinary_commands_run_without_kernel_enforcement_too(project: Path, commands: list[tuple[str, str]]) -> None:
    shell = shell_readonly(context(project, "shell_readonly", OFF))
    for command, expected in commands:
        assert re.search(expected, run(shell, command)["stdout"], re.MULTILINE), command


@pytest.fixture
def traps(project: Path) -> Path:
    """The project with programs of its own that have the names of ordinary ones."""
    for name in ("evil", "ls", "git", "src/ls"):
        (project / name).write_text("#!/bin/sh\ntouch marker\n")
        (project / name).chmod(0o755)
    return project


@each_row("command", WRITES_OR_RUNS)
def test_commands_that_may_write_or_run_others_are_blocked(
    shell: FunctionToolset[Any], traps: Path, command: str
) -> None:
    before = (traps / "notes.txt").read_text()
    assert run_without_approval(shell, command) is None
    assert decision(shell, command).effect == "deny"
    assert decision(shell, command).reason
    assert not (traps / "marker").exists()
    assert (traps / "notes.txt").read_text() == before


@each_row("command", READS_ELSEWHERE)
def test_reading_elsewhere_needs_approval(shell: FunctionToolset[Any], command: str) -> None:
    assert "secret" not in output_of(run_without_approval(shell, command))
    assert decision(shell, command).effect == "ask"


@each_row("cwd", ["..", "/", "leakdir", "missing", "notes.txt", "~", "src/../.."])
def test_a_directory_that_is_outside_or_missing_is_refused(shell: FunctionToolset[Any], cwd: str) -> None:
    assert decision(shell, "ls", cwd=cwd).effect == "deny"


def test_paths_are_relative_to_the_commands_working_directory(shell: FunctionToolset[Any], project: Path) -> None:
    assert run(shell, "cat ../notes.txt", cwd="src")["stdout"] == "pear\napple\nplum\n"
    assert decision(shell, "cat ../notes.txt", cwd="src").effect == "allow"
    assert decision(shell, "cat ../../secret.txt", cwd="src").effect == "ask"
    assert decision(shell, f"cat {project}/notes.txt", cwd="src").effect == "allow"


def test_programs_come_from_outside_the_project(
    shell: FunctionToolset[Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bin").mkdir()
    for name in ("ls", "git", "cat"):
        (project / "bin" / name).write_text("#!/bin/sh\ntouch marker\n")
        (project / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{project / 'bin'}:.:bin::{os.environ['PATH']}")
    monkeypatch.chdir(project)
    assert "notes.txt" in run(shell, "ls")["stdout"]
    assert "First words" in run(shell, "git log")["stdout"]
    assert not (project / "marker").exists()


FRAGMENTS = [
    *READING_PROGRAMS,
    *("status", "log", "diff", "show", "rm", "sh", "touch", "env", "marker", "notes.txt", ".", "..", "/", "leak", "~"),
    *(
        "-o",
        "-exec",
        "-delete",
        "--output=marker",
        "-c",
        "-C",
        "-n",
        "-r",
        "-O",
        "-i",
        "--",
        "-",
        "-fprint",
        "-M",
        "-U",
    ),
    *(";", "&&", "|", "||", "&", ">", "<", "$(", ")", "`", "'", '"', "\\", "\n", "$X", "*", "{a,b}", "#", "{}", "x"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=7), st.sampled_from([" ", ""]))
def test_only_literal_listed_commands_run_without_approval(words: list[str], gap: str) -> None:
    text = gap.join(words)
    toolset = shell_readonly(context(Path(__file__).parent, "shell_readonly"))
    if decision(toolset, text).effect != "allow":
        return
    for argv in parse_command(text):
        assert argv[0] in READING_PROGRAMS
        assert argv[0] not in WRAPPERS | (INTERPRETERS - {"git", "sed", "awk", "gawk", "mawk", "nawk"})
        reading = read_command(argv)
        assert reading.reads, argv
        assert not reading.unknown, argv
        paths = [piece.text for piece in reading.pieces if piece.role in ("path", "any", "ref")]
        assert not any(path.startswith(("/", "..")) for path in paths), argv


@given(st.text(max_size=40))
def test_any_text_gets_a_decision(text: str) -> None:
    toolset = shell_readonly(context(Path(__file__).parent, "shell_readonly"))
    found = decision(toolset, text)
    try:
        parse_command(text)
    except CommandRefusedError:
        assert found.effect == "deny"
    else:
        assert found.effect in ("allow", "ask", "deny")

"""`--env-file`: every command that links a project takes it, and finds what its manifest refers to in it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from llm_do.cli.app import COMMANDS, command_module
from tests.cli.cli_processes import run_forked
from tests.support.tables import each_row
from tests.toolsets.mcp_support import command

UNSET = {"SMALL_TOKEN": None, "LLM_DO_TRUST": "1"}

TEST = """\
tests:
  - name: answers
    input: hi
    expect: {output: {equals: done}}
"""


def options_of(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each command of a group, or the one that there is, with its options."""
    found = get_command(import_module(command_module(name)).app)
    for own, each in getattr(found, "commands", {name: found}).items():
        yield own, {option: param for param in each.params for option in param.opts}


def test_each_command_that_runs_or_imports_a_project_takes_the_option_and_says_the_same_of_it() -> None:
    helps = {
        (group, name): getattr(options.get("--env-file"), "help", None)
        for group in COMMANDS
        for name, options in options_of(group)
        if "--trust" in options or name in ("mcp", "doctor")
    }
    del helps["undo", "undo"]  # it links nothing
    assert len(helps) == 15
    assert len({each.rstrip(".") if each else each for each in helps.values()}) == 1
    assert "`${NAME}`" in str(helps["serve", "serve"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose server has a variable, and beside it a file that says what it is."""
    root = tmp_path / "p"
    (root / "tests").mkdir(parents=True)
    (root / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\ntoolsets: [small]\n---\nHelp.\n")
    (root / "answers.yaml").write_text("- text: done\n")
    (root / "tests" / "main.test.yaml").write_text(TEST)
    small = {"type": "mcp", "command": command(), "timeout": 60, "env": {"TOKEN": "${SMALL_TOKEN}"}}
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "toolsets": {"small": small}}
    (root / "project.json").write_text(json.dumps(manifest))
    (tmp_path / "named").write_text("SMALL_TOKEN=x\n")
    return root


COMMAND_LINES = [
    ("check",),
    ("graph",),
    ("tools",),
    ("tools", "--connect"),
    ("lock",),
    ("test",),
    ("approvals", "explain", "--project", ".", "small_whoami"),
]


@pytest.mark.slow
@each_row("words", [[*each] for each in COMMAND_LINES])
def test_a_command_finds_a_variable_in_the_file_alone(words: list[str], project: Path) -> None:
    own = len(words) if "explain" not in words else 2
    line = [*words[:own], "--env-file", "../named", *words[own:]]
    without = run_forked(*words, cwd=project, env=UNSET)
    assert without.code != 0
    assert "SMALL_TOKEN is not set" in without.out + without.err
    found = run_forked(*line, cwd=project, env=UNSET)
    assert found.code == 0, found.out + found.err
    missing = run_forked(*[each.replace("named", "missing") for each in line], cwd=project, env=UNSET)
    assert missing.code == 2
    assert "the env file" in missing.err


def test_serve_links_its_projects_with_the_file(project: Path) -> None:
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = ["serve", "--no-browser", "--port", str(taken.getsockname()[1])]
        without = run_forked(*line, cwd=project, env=UNSET)
        assert (without.code, "SMALL_TOKEN is not set" in without.err) == (3, True), without.err
        found = run_forked(*line, "--env-file", "../named", cwd=project, env=UNSET)
        assert (found.code, "can't be used" in found.err) == (2, True), found.err


def test_a_durable_run_that_needs_the_file_is_resumed_with_it(project: Path) -> None:
    began = run_forked("run", "hi", "--durable", "--env-file", "../named", cwd=project, env=UNSET)
    assert began.out == "done\n", began.err
    run_id = json.loads(run_forked("runs", "list", "--format", "json", cwd=project, env=UNSET).out)[0]["run_id"]
    assert "SMALL_TOKEN is not set" in run_forked("resume", run_id, cwd=project, env=UNSET).err
    assert run_forked("resume", run_id, "--env-file", "../named", cwd=project, env=UNSET).out == "done\n"


@pytest.mark.slow
@each_row("words", [["approvals", "replay"], ["test", "--from"], ["mcp", "-q"]])
def test_a_command_that_has_to_do_with_runs_finds_a_variable_in_the_file_alone(words: list[str], project: Path) -> None:
    ran = run_forked("run", "hi", "--env-file", "../named", cwd=project, env=UNSET)
    assert ran.out == "done\n", ran.err
    if "--from" in words:
        runs = json.loads(run_forked("runs", "list", "--format", "json", cwd=project, env=UNSET).out)
        words = [*words, runs[0]["run_id"]]
    without = run_forked(*words, cwd=project, env=UNSET)  # its standard input ends at once, and so does `mcp`
    assert without.code != 0
    assert "SMALL_TOKEN is not set" in without.out + without.err
    found = run_forked(*words, "--env-file", "../named", cwd=project, env=UNSET)
    assert found.code == 0, found.out + found.err


def test_doctor_finds_keys_in_the_file(project: Path) -> None:
    (project.parent / "named").write_text("XAI_API_KEY=k-0123456789\n")
    shown = run_forked("doctor", "--env-file", "../named", cwd=project, env={**UNSET, "XAI_API_KEY": None}).out
    assert "XAI_API_KEY (in ../named)" in shown
    assert "k-0123456789" not in shown

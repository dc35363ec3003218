"""Looking at a folder that isn't trusted runs nothing of it, whichever command looks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from llm_do._startup import code_access
from llm_do.cli.app import ACCESS, COMMANDS, access_of, command_module
from llm_do.linker.linker import check_project, link
from llm_do.runtime.approval import trusted_folders
from tests.cli.cli_processes import REPOSITORY, environment, run_forked
from tests.cli.trust.hostile_clone import traces, write_hostile_clone
from tests.support.tables import each_row

LOOKS = {
    "check": ["check"],
    "check --text-only": ["check", "--text-only", "--strict"],
    "check --strict": ["check", "--strict", "--format", "json"],
    "graph": ["graph", "--permissions"],
    "graph --states": ["graph", "--states", "main"],
    "tools": ["tools"],
    "tools --connect": ["tools", "--connect"],
    "lock": ["lock"],
    "approvals explain": ["approvals", "explain", "shell", "touch", "canary-shell"],
    "run --dry-run": ["run", "--dry-run"],
    "chat --dry-run": ["chat", "--dry-run"],
}
"""Commands that look, by what they are called."""

LOOKS_AT_RECORDS = {"approvals replay": ["approvals", "replay"]}
"""Commands that look at a project and its recorded runs, of which the clone has none."""

READS = {
    **LOOKS_AT_RECORDS,
    "approvals list": ["approvals", "list"],
    "approvals revoke": ["approvals", "revoke", "1"],
    "approvals accept": ["approvals", "accept"],
    "doctor": ["doctor"],
    "init": ["init"],
    "models": ["models"],
    "runs list": ["runs", "list"],
    "runs show": ["runs", "show", "last"],
    "runs costs": ["runs", "costs"],
    "runs compare": ["runs", "compare", "a", "b"],
    "schema": ["schema", "project"],
    "threads list": ["threads", "list"],
    "threads show": ["threads", "show", "a"],
    "threads config": ["threads", "config", "a"],
    "threads export": ["threads", "export", "a"],
    "trust": ["trust", "--show"],
}
"""Commands that never need a project's code."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    root.mkdir()
    return write_hostile_clone(root)


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str | None]:
    return {"LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with code_access.closed_folders("looks"):
        yield


def leaves() -> Iterator[str]:
    for name in COMMANDS:
        command = get_command(import_module(command_module(name)).app)
        inner = getattr(command, "commands", None)
        yield from (f"{name} {each}" for each in inner) if inner else (name,)


def test_every_command_is_declared_to_run_to_look_or_only_to_read() -> None:
    every = set(leaves())

    assert {name for name in every if name not in ACCESS and name.partition(" ")[0] not in ACCESS} == set()
    assert {name for name in ACCESS if name not in every | set(COMMANDS)} == set()
    assert {name for name in ACCESS if ACCESS[name] == "looks" and name not in {**LOOKS, **LOOKS_AT_RECORDS}} == set()


def test_a_command_line_that_is_not_understood_runs_nothing() -> None:
    assert {access_of(args) for args in ([], ["--help"], ["nonsense"], ["approvals"], ["run2"])} == {"reads"}


@each_row("name", LOOKS)
@pytest.mark.slow
def test_a_command_that_looks_runs_nothing_and_says_what_it_left_out(
    name: str, clone: Path, state: dict[str, str | None]
) -> None:
    ended = run_forked(*LOOKS[name], cwd=clone, env=state)

    assert traces(clone) == []
    assert "Traceback" not in ended.err
    text = " ".join((ended.out + ended.err).split())
    if name == "check --text-only":
        assert "were not imported, send is unknown and the policy function tools.py:decide was not asked" in text
        assert "(--text-only)" in text
    else:
        assert "this folder isn't trusted, so linked.py, tools.py and unlisted.py were not imported" in text
        assert "--trust includes it once, `llm-do trust .` always" in text
    assert ("db was not started" in text) is (name in ("tools --connect", "lock"))
    assert ended.code == (3 if name in ("check --strict", "lock") else 0)
    assert ("--trust allows that once, `llm-do trust` always." in text) is (name == "lock")
    assert not (clone / "llm-do.lock").exists()


@each_row("name", [name for name in READS if name in ("doctor", "approvals list", "approvals replay", "init")])
def test_a_command_that_reads_runs_nothing(name: str, clone: Path, state: dict[str, str | None]) -> None:
    ended = run_forked(*READS[name], cwd=clone, env=state)

    assert traces(clone) == []
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_no_command_that_reads_runs_anything(clone: Path, state: dict[str, str | None]) -> None:
    for args in READS.values():
        assert "Traceback" not in run_forked(*args, cwd=clone, env=state).err

    assert traces(clone) == []


def test_the_clone_would_leave_traces_if_it_were_trusted(clone: Path, state: dict[str, str | None]) -> None:
    ended = run_forked("check", "--trust", cwd=clone, env=state)

    assert traces(clone) == ["default", "elsewhere-target.py", "helper.py", "package-__init__.py", "package-inner.py",
                             "tools.py", "unlisted.py"]  # fmt: skip
    assert "isn't trusted" not in ended.err


def test_completing_a_command_line_runs_nothing(clone: Path, state: dict[str, str | None]) -> None:
    env = {**state, "_LLM_DO_COMPLETE": "complete_bash", "COMP_WORDS": "llm-do run --entry ma", "COMP_CWORD": "3"}

    ended = run_forked(cwd=clone, env=env)

    assert ended.out.strip() == "main"
    assert traces(clone) == []


def test_trusting_a_command_by_the_environment_includes_everything(clone: Path, state: dict[str, str | None]) -> None:
    for value, trusted in {"1": True, "0": False, "": False}.items():
        ended = run_forked("check", cwd=clone, env={**state, "LLM_DO_TRUST": value})
        assert ("isn't trusted" in ended.err) is not trusted, value

    odd = run_forked("check", cwd=clone, env={**state, "LLM_DO_TRUST": "maybe"})
    assert odd.code == 2
    assert "LLM_DO_TRUST is 'maybe'" in odd.err


def test_ci_does_not_mean_trust(clone: Path, state: dict[str, str | None]) -> None:
    assert "isn't trusted" in run_forked("check", cwd=clone, env={**state, "CI": "true"}).err
    assert traces(clone) == []


def test_trust_and_text_only_exclude_each_other(clone: Path, state: dict[str, str | None]) -> None:
    ended = run_forked("check", "--trust", "--text-only", cwd=clone, env=state)

    assert ended.code == 2
    assert "--trust and --text-only exclude each other" in ended.err


def test_a_relative_state_folder_is_not_one(clone: Path, state: dict[str, str | None]) -> None:
    """A clone holds a `.state` folder in which it trusts itself."""
    ended = run_forked("check", cwd=clone, env={**state, "XDG_STATE_HOME": ".state", "HOME": str(clone.parent)})

    assert "isn't trusted" in ended.err


def test_a_folder_of_agents_and_rules_is_never_asked_about(tmp_path: Path, state: dict[str, str | None]) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHelp.\n")

    ended = run_forked("check", "--strict", cwd=tmp_path, env=state)

    assert (ended.code, ended.err.strip()) == (0, "no errors")


def test_what_is_known_without_importing_is_reported(tmp_path: Path, closed: None) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\ntools: [rate, nonsense]\ntoolsets: [todo]\n---\nHelp.\n")
    (tmp_path / "tools.py").write_text("def rate(x: int) -> int:\n    return x\n\n\nTOOLS = [rate\n")

    report = check_project(tmp_path)

    assert [(item.code, item.file) for item in report.diagnostics] == [("LD201", "main.agent"), ("LD301", "tools.py")]
    assert report.left_out is not None
    assert report.left_out.names == {"main": ("rate", "nonsense")}


def test_a_project_of_a_closed_folder_has_what_is_known(clone: Path, closed: None) -> None:
    project = link(clone)

    assert (project.entry.kind, project.entry.name, project.entry.function) == ("function", "entry", None)
    assert [ref.name for ref in project.registry["main"].value.toolsets] == ["sh", "db"]
    assert traces(clone) == []


def test_a_command_that_forgot_to_ask_cannot_import_or_start(clone: Path, closed: None) -> None:
    from llm_do.linker.python.namespace import ModuleSpace

    space = ModuleSpace(clone, [clone / "tools.py"])
    with pytest.raises(RuntimeError, match=r"nothing in .* may run"):
        __import__(space.module_name(clone / "helper.py"))
    space.forget()
    with code_access.closed_folders("reads"), pytest.raises(RuntimeError, match="never needs"):
        code_access.open_folder(clone)
    assert traces(clone) == []


def test_a_damaged_list_of_trusted_folders_is_an_error_with_its_place(
    clone: Path, state: dict[str, str | None]
) -> None:
    file = Path(str(state["XDG_STATE_HOME"]), "llm-do", "trust.json")
    file.parent.mkdir(parents=True)
    file.write_text('{"version": 1,\n "trusted": [7]}')
    file.chmod(0o600)

    ended = run_forked("check", cwd=clone, env=state)

    assert ended.code == 1
    assert f"{file}:2: an entry has a folder's real `path` and its `device`" in ended.err
    assert traces(clone) == []


def test_a_trusted_folder_is_looked_at_whole(
    clone: Path, state: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state["XDG_STATE_HOME"]))
    trusted_folders.add(clone.parent)

    ended = run_forked("graph", cwd=clone, env=state)

    assert "isn't trusted" not in ended.err
    assert "tools.py" in traces(clone)


@pytest.mark.slow
@pytest.mark.parametrize("args", [LOOKS["check"], LOOKS["graph"], LOOKS["run --dry-run"], ["doctor"]])
def test_the_system_sees_no_program_started_and_no_module_loaded(
    args: list[str], clone: Path, state: dict[str, str | None], tmp_path: Path
) -> None:
    if subprocess.run(["which", "strace"], capture_output=True).returncode:
        pytest.skip("there is no strace")
    log = tmp_path / "log"
    program = Path(sys.executable).with_name("llm-do")
    words = ["strace", "-f", "-o", str(log), "-e", "trace=execve,execveat,fork,vfork,clone,clone3,openat"]
    env = environment(**state, PYTHONPATH=str(REPOSITORY))
    subprocess.run([*words, str(program), *args], cwd=clone, env=env, check=args[0] == "graph", capture_output=True)

    lines = log.read_text(errors="replace").splitlines()
    started = [line for line in lines if re.search(r"\bexecve(at)?\(", line)]
    opened = {
        os.path.relpath(found, clone) for found in re.findall(rf'openat\([^"]*"({clone}[^"]*)"', "\n".join(lines))
    }
    # It looks for a sandbox by starting one.
    programs = [re.search(r'\("([^"]*)"', line) for line in started]
    assert {Path(found[1]).name for found in programs if found} <= {"llm-do", "bwrap", "true"}
    assert not any(str(clone) in line or "server.sh" in line for line in started)
    assert not any(name.endswith((".pyc", ".pth", "conftest.py", "customize.py")) for name in opened)
    assert traces(clone) == []


def test_assertions_about_unknown_tools_are_not_proved(tmp_path: Path, state: dict[str, str | None]) -> None:
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "python_files": ["tools.py"],'
        ' "permissions": {"assert": ["never shell"]}}'
    )
    (tmp_path / "main.agent").write_text("---\nname: main\ntools: [send]\n---\nHelp.\n")
    (tmp_path / "tools.py").write_text("def send() -> None:\n    'Send.'\n\n\nTOOLS = [send]\n")

    ended = run_forked("check", cwd=tmp_path, env=state)

    assert "assertions were not proved" in " ".join(ended.err.split())
    assert ended.code == 0


def test_programs_read_what_was_left_out(clone: Path, state: dict[str, str | None]) -> None:
    for args in (["check"], ["tools"], ["graph"]):
        data = run_forked(*args, "--format", "json", cwd=clone, env=state).json
        assert data["left_out"].startswith("this folder isn't trusted, so linked.py"), args
    assert "left_out" not in run_forked("check", "--trust", "--format", "json", cwd=clone, env=state).json


def test_a_dry_run_of_agents_alone_shows_its_input(tmp_path: Path, state: dict[str, str | None]) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHelp.\n")

    ended = run_forked("run", "hi", "--dry-run", cwd=tmp_path, env=state)

    assert 'input: {"input": "hi", "attachments": []}' in ended.out
    assert ended.err == ""


def test_each_name_says_what_runs_unasked_and_what_is_unknown(clone: Path, state: dict[str, str | None]) -> None:
    unread = "send  unknown  its file was not imported"
    tree = run_forked("graph", cwd=clone, env=state).out
    assert "shell  ask*  sh\n" in tree
    assert "db  ask  tools are only known at run time\n" in tree
    assert f"{unread}\n" in tree
    permissions = run_forked("graph", "--permissions", cwd=clone, env=state).out
    assert f"main: {unread}\n" in permissions
    assert "main: db  ask  tools are only known at run time\n" in permissions
    assert "|unknown|" in run_forked("graph", "--format", "mermaid", cwd=clone, env=state).out
    agents = run_forked("graph", "--format", "json", cwd=clone, env=state).json["agents"]
    assert [(agent["name"], agent["unread"]) for agent in agents] == [("main", ["send"])]
    assert "  send: not known, since its file was not imported\n" in run_forked("tools", cwd=clone, env=state).out
    trusted = run_forked("graph", cwd=clone, env={**state, "LLM_DO_TRUST": "1"}).out
    assert "send  allow" in trusted
    assert "unknown" not in trusted

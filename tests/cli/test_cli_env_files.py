"""`--env-file`: every command that links a project or opens its store finds what the manifest refers to in it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.main import get_command

from llm_do.cli.app import COMMANDS, command_module
from tests.cli.cli_processes import run_forked
from tests.support.postgres import PASSWORD, USER, Server
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


def test_each_command_that_links_a_project_or_opens_its_store_takes_the_option_and_says_the_same_of_it() -> None:
    helps = {
        (group, name): getattr(options.get("--env-file"), "help", None)
        for group in COMMANDS
        for name, options in options_of(group)
        if "--trust" in options or "--store" in options or name in ("doctor", "models")
    }
    del helps["undo", "undo"]  # it links nothing, and what it restores isn't in the store
    assert len(helps) == 37
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


STORE_COMMANDS = [
    "threads list",
    "threads show t",
    "threads config t",
    "threads set t model=test",
    "threads fork t u",
    "threads branch t",
    "threads delete t",
    "threads export t",
    "threads import ../t.jsonl",
    "memory list",
    "memory show a",
    "memory forget --all",
    "runs list",
    "runs costs",
    "runs show",
    "runs show --html -",
    "runs show --requests",
    "runs compare",
    "runs drop a",
    "runs prune --older-than 90d",
    "approvals pending",
    "approvals show a.1",
    "approvals answer a.1 allow",
]
UNSET_STORE = {"DB_USER": None, "DB_PASSWORD": None, "LLM_DO_TRUST": "1"}


def stored_in(root: Path, store: str) -> Path:
    """A project whose manifest names a store, and beside it a file with the variables of its URL."""
    root.mkdir(exist_ok=True)
    (root / "main.agent").write_text("---\nname: main\nmodel: script:answers.yaml\n---\nHelp.\n")
    (root / "answers.yaml").write_text("- text: done\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "threads": {"store": store}}
    (root / "project.json").write_text(json.dumps(manifest))
    (root.parent / "prod.env").write_text("DB_USER=app\nDB_PASSWORD=a/b-of-the-file\n")
    return root


def test_the_list_of_commands_on_a_store_is_complete() -> None:
    listed = {tuple(words.split()[:2]) for words in STORE_COMMANDS}
    groups = ("threads", "memory", "runs", "approvals")
    found = {(group, name) for group in groups for name, options in options_of(group) if "--store" in options}
    assert found - {("approvals", "replay")} == listed  # it links the project as well


@pytest.mark.slow
@each_row("words", STORE_COMMANDS)
def test_a_command_on_a_store_fills_its_url_in_from_the_file(words: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    if "import" in words:
        made = stored_in(tmp_path / "made", "sqlite")
        run_forked("threads", "set", "t", "model=test", cwd=made)
        (tmp_path / "t.jsonl").write_text(run_forked("threads", "export", "t", cwd=made).out)
    root = stored_in(tmp_path / "p", f"postgresql://${{DB_USER}}:${{DB_PASSWORD}}@127.0.0.1:{port}/runs")
    without = run_forked(*words.split(), cwd=root, env=UNSET_STORE)
    assert (without.code, "the environment variable DB_USER" in without.err) == (2, True), without.err
    found = run_forked(*words.split(), "--env-file", "../prod.env", cwd=root, env=UNSET_STORE)
    assert (found.code, found.out) == (1, ""), found.err
    assert f"127.0.0.1:{port}" in found.err  # nobody listens there
    assert "of-the-file" not in found.err


@pytest.mark.slow
def test_what_was_recorded_with_the_file_is_listed_and_changed_with_it(tmp_path: Path, postgres: Server) -> None:
    tables = postgres.url().rpartition("=")[2]
    url = f"postgresql://${{DB_USER}}:${{DB_PASSWORD}}@127.0.0.1:{postgres.port}/postgres?schema={tables}"
    root = stored_in(tmp_path / "p", url)
    (tmp_path / "prod.env").write_text(f"DB_USER={USER}\nDB_PASSWORD='{PASSWORD}'\n")
    named = ("--env-file", "../prod.env")

    ran = run_forked("run", "hi", "--thread", "t", "--durable", "--run-id", "r-1", *named, cwd=root, env=UNSET_STORE)
    assert ran.out == "done\n", ran.err
    assert "`llm-do resume --env-file ../prod.env r-1` continues it" in ran.err.replace("\n", " ")
    (run,) = run_forked("runs", "list", "--format", "json", *named, cwd=root, env=UNSET_STORE).json
    assert run["run_id"] == "r-1"
    assert run_forked("threads", "set", "t", "history_limit=3", *named, cwd=root, env=UNSET_STORE).json
    from_outside = run_forked("threads", "show", "p", "t", "--env-file", "prod.env", cwd=tmp_path, env=UNSET_STORE)
    assert "done" in from_outside.out
    for ended in (ran, from_outside):
        assert PASSWORD not in ended.err + ended.out


def test_a_password_that_is_written_out_is_not_in_what_is_suggested_next(tmp_path: Path, postgres: Server) -> None:
    root, url = stored_in(tmp_path / "p", "sqlite"), postgres.tcp_url()
    ran = run_forked("run", "hi", "--durable", "--run-id", "r-1", "--store", url, cwd=root, env=UNSET_STORE)
    assert ran.out == "done\n", ran.err
    shown = f"postgresql://{USER}:PASSWORD@127.0.0.1:{postgres.port}/postgres"
    assert f"`llm-do resume --store {shown} r-1`" in " ".join(ran.err.split())
    assert PASSWORD not in ran.err
    assert quote(PASSWORD) not in ran.err


@each_row("words", [["runs", "list"], ["threads", "list"], ["memory", "list"], ["approvals", "pending"], ["models"]])
def test_a_file_that_can_not_be_read_is_an_error_wherever_it_is_named(words: list[str], tmp_path: Path) -> None:
    root = stored_in(tmp_path / "p", "sqlite")
    run_forked("threads", "set", "t", "model=test", cwd=root)
    (root / "binary").write_bytes(b"DB_PASSWORD=\xff-secret\n")
    named = {"missing": "No such file", "binary": "is not text in UTF-8", ".": "Is a directory"}
    ended = {file: run_forked(*words, "--env-file", file, cwd=root) for file in named}
    for file, reason in named.items():
        assert (ended[file].code, ended[file].out) == (2, ""), file
        assert f"the env file {file} " in ended[file].err
        assert reason in ended[file].err.replace("\n", " ")
        assert "secret" not in ended[file].err


def test_a_named_file_counts_where_the_folder_is_not_trusted_and_its_own_does_not(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    root = stored_in(tmp_path / "p", "postgresql://${DB_USER}:${DB_PASSWORD}@127.0.0.1:1/runs")
    (root / ".env").write_text("DB_USER=theirs\nDB_PASSWORD=theirs\n")
    env = {**UNSET_STORE, "LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state")}
    named = ["--env-file", "../prod.env"]
    own = ["--store", "postgresql://${DB_USER}:${DB_PASSWORD}@127.0.0.1:1/mine"]
    (tmp_path / "half.env").write_text("DB_USER=app\n")

    lines = {"manifest": named, "named": [*named, *own], "half": ["--env-file", "../half.env", *own]}
    ended = {name: run_forked("runs", "list", *line, cwd=root, env=env) for name, line in lines.items()}

    assert (ended["manifest"].code, "was not contacted" in ended["manifest"].err) == (3, True)
    assert (ended["named"].code, "127.0.0.1" in ended["named"].err) == (1, True), ended["named"].err
    assert (ended["half"].code, "DB_PASSWORD" in ended["half"].err) == (2, True)
    assert "of-the-file" not in "".join(each.err for each in ended.values())


def test_a_file_may_be_a_pipe(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    root = stored_in(tmp_path / "p", "postgresql://${DB_USER}:${DB_PASSWORD}@127.0.0.1:1/runs")
    for line in (["runs", "list"], ["runs", "list", "--store", "here.db"]):
        ended = run_forked(
            *line, "--env-file", "/dev/stdin", cwd=root, env=UNSET_STORE, stdin=b"DB_USER=a\nDB_PASSWORD=b\n"
        )
        assert "is not set" not in ended.err
        assert ("127.0.0.1" if len(line) == 2 else "nothing has been recorded") in ended.err


def test_models_are_those_of_the_named_project_with_the_keys_of_the_named_file(tmp_path: Path) -> None:
    root = stored_in(tmp_path / "p", "sqlite")
    manifest = json.loads((root / "project.json").read_text())
    (root / "project.json").write_text(json.dumps({**manifest, "models": {"quick": "script:answers.yaml"}}))
    (tmp_path / "prod.env").write_text("OPENAI_API_KEY=k-0123456789\n")
    lines = {
        "first": ["models", "p", "--env-file", "prod.env"],
        "option": ["models", "list", "-p", "p", "--env-file", "prod.env"],
        "none": ["models", "--env-file", "prod.env"],
        "without": ["models", "p"],
        "nowhere": ["models", "-p", "q"],
        "twice": ["models", "p", "list", "-p", "p"],
    }

    ended = {name: run_forked(*line, cwd=tmp_path, env={"OPENAI_API_KEY": None}) for name, line in lines.items()}

    assert [name for name, each in ended.items() if "quick" in each.out] == ["first", "option", "without"]
    assert [name for name, each in ended.items() if "openai:" in each.out] == ["first", "option", "none"]
    assert (ended["nowhere"].code, ended["twice"].code) == (2, 2)
    assert "k-0123456789" not in "".join(each.out + each.err for each in ended.values())


def test_doctor_finds_keys_in_the_file(project: Path) -> None:
    (project.parent / "named").write_text("XAI_API_KEY=k-0123456789\n")
    shown = run_forked("doctor", "--env-file", "../named", cwd=project, env={**UNSET, "XAI_API_KEY": None}).out
    assert "XAI_API_KEY (in ../named)" in shown
    assert "k-0123456789" not in shown

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_many
from tests.cli.cli_terminal import Screen


def test_a_group_without_a_command_shows_its_help(project: Callable[..., Path]) -> None:
    root = project()
    ended = run_many({name: ([name], root, b"") for name in ("threads", "runs", "approvals")})

    for name, each in ended.items():
        assert (each.code, each.out) == (2, "")
        assert each.err.startswith(f"Usage: llm-do {name}")
        assert "..." not in each.err.partition("Commands:")[2]


def test_threads_and_runs_belong_to_the_project_around_the_current_folder(project: Callable[..., Path]) -> None:
    root = project(
        manifest='{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["*.py"]}'
    )
    below = root / "notes" / "old"
    below.mkdir(parents=True)
    run_many({"run": (["run", ".", "hello", "--model", "test", "--thread", "t", "--reject-all"], root, b"")})

    ended = run_many(
        {
            "threads": (["threads", "list"], below, b""),
            "runs": (["runs", "list"], below, b""),
            "named": (["runs", "list", "-p", "../.."], below, b""),
        }
    )

    assert [each.code for each in ended.values()] == [0, 0, 0]
    assert ended["threads"].out.startswith("t  ")
    assert ended["runs"].out == ended["named"].out != ""


FIRST = {
    "tools": ["tools"],
    "tools of": ["tools", "main"],
    "graph": ["graph"],
    "check": ["check"],
    "explain": ["approvals", "explain", "send", "to=ann"],
    "explain for": ["approvals", "explain", "main", "send", "to=ann"],
    "approvals": ["approvals", "list"],
    "threads": ["threads", "list"],
    "thread": ["threads", "show", "t"],
    "last thread": ["threads", "show"],
    "settings": ["threads", "config", "t"],
    "exported": ["threads", "export", "t"],
    "runs": ["runs", "list"],
    "run": ["runs", "show"],
}
"""Commands, with the arguments that follow the project."""


@pytest.mark.slow
def test_the_project_is_the_first_argument_of_every_command_that_reads_one(project: Callable[..., Path]) -> None:
    root = project("- text: done")
    run_many({"run": (["run", "hello", "--thread", "t"], root, b"")})
    run_many({"set": (["threads", "set", "project", "t", "model=test"], root.parent, b"")})

    def ended(place: Callable[[list[str]], list[str]], cwd: Path) -> dict[str, tuple[int, str]]:
        calls = {name: (place(words), cwd, b"") for name, words in FIRST.items()}
        return {name: (each.code, each.out.replace("project/", "")) for name, each in run_many(calls).items()}

    def first(words: list[str]) -> list[str]:
        count = 2 if words[0] in ("threads", "runs", "approvals") else 1
        return [*words[:count], "project", *words[count:]]

    here = ended(lambda words: words, root)
    assert {code for code, _ in here.values()} == {0}
    assert json.loads(here["settings"][1]) == {"model": "test"}
    assert ended(first, root.parent) == here
    assert ended(lambda words: [*words[:1], *words[1:2], "--project", "project", *words[2:]], root.parent) == here


def test_an_argument_that_names_no_project_belongs_to_the_command(project: Callable[..., Path]) -> None:
    root = project("- text: done")
    (root / "send").mkdir()  # a folder without a project
    (root / "t.json").write_text("{}")
    ended = run_many(
        {
            "tool": (["approvals", "explain", "send", "to=ann"], root, b""),
            "agent": (["tools", "mian"], root, b""),
            "only": (["threads", "import", "t.json"], root, b""),
            "nowhere": (["tools", "main"], root.parent, b""),
        }
    )

    assert ended["tool"].out.startswith("main calls send")
    assert ended["agent"].err == "error: the project has no agent 'mian'. Did you mean `main`?\n"
    assert "t.json" in ended["only"].err
    assert ended["nowhere"].err.startswith("error: no project here: ")


@pytest.mark.slow
def test_every_command_that_reads_a_project_takes_it_once_as_option_or_argument(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'")
    away = root.parent
    commands = ["run", "chat", "check", "graph", "doctor"]
    calls = {
        "run": ["run", "-p", "project", "hello"],
        "chat": ["chat", "--project", "project", "--no-record"],
        "check": ["check", "-p", "project"],
        "graph": ["graph", "-p", "project"],
        "doctor": ["doctor", "-p", "project"],
        "prompt": ["run", "-p", "project", "look at src/main.py, or not"],
        "empty": ["run", "-p", "project", " "],
        "many": ["run", "-p", "project", "hello", "again"],
    }
    twice = {f"{name} twice": [name, "project", "-p", "project"] for name in commands}

    ended = run_many({name: (args, away, b"hi\n") for name, args in {**calls, **twice}.items()})

    assert [ended[name].code for name in commands] == [0] * 5
    assert (ended["run"].out, ended["chat"].out) == ("got hello\n\n<stdin>\nhi\n</stdin>\n", "got hi\n")
    assert ended["prompt"].out.startswith("got look at src/main.py, or not\n")
    assert (ended["empty"].code, ended["empty"].out) == (2, "")
    expected = "error: the project is named twice, with --project and as an argument. Keep one of them.\n"
    assert [ended[name].err for name in ("many", *twice)] == [expected] * 6


def test_without_an_id_the_latest_run_and_thread_are_shown(project: Callable[..., Path]) -> None:
    root = project("- text: done")
    run_many({"none": (["threads", "set", "other", "model=test"], root, b"")})
    before = run_many({"runs": (["runs", "show"], root, b"")})["runs"]
    for thread in ("a", "b"):
        run_many({"run": (["run", f"in {thread}", "--thread", thread], root, b"")})

    calls = {"runs": ["runs", "show"], "threads": ["threads", "show"], "unknown": ["runs", "show", "zz"]}
    ended = run_many({name: (call, root, b"") for name, call in calls.items()})

    assert (ended["unknown"].code, ended["unknown"].err) == (
        2,
        "error: no run has the id 'zz'. `llm-do runs list` shows the runs.\n",
    )
    assert before.code == 2
    assert before.err.startswith("error: there are no runs. Run the project;")
    assert ended["runs"].out.splitlines()[1] == "thread b"
    assert ended["runs"].out.splitlines()[2].startswith("main  in b  ")
    assert ended["threads"].out.startswith("thread b, 2 messages")


def test_a_thread_refuses_invalid_model_names(project: Callable[..., Path]) -> None:
    root = project()
    calls = {"bare": "model=gpt-5", "list": 'model=["test", "locl"]', "prefix": "model=mine:x", "none": "model="}

    ended = run_many({name: (["threads", "set", "t", setting], root, b"") for name, setting in calls.items()})

    assert [each.code for each in ended.values()] == [2, 2, 0, 0]
    assert "the model 'gpt-5' names no provider. Did you mean `openai:gpt-5`?" in ended["bare"].err
    assert "Did you mean `local`?" in ended["list"].err
    assert ended["prefix"].err.startswith("warning: the model 'mine:x' names an unknown provider, unless a Python file")
    assert "mine:x" in ended["prefix"].out
    assert ended["none"].err == ""


@pytest.mark.slow
def test_lists_wrap_between_words_on_a_terminal_and_json_does_not(project: Callable[..., Path]) -> None:
    root = project("- tools: [{name: shout}]\n- text: an answer that is a little longer than the terminal is wide")
    run_many({"run": (["run", ".", "hello", "--thread", "t", "--approve-all"], root, b"")})

    shown = {}
    for args in (
        ["runs", "show"],
        ["threads", "show"],
        ["tools"],
        ["graph", "--permissions", "--no-color"],
        ["threads", "export", "t"],
    ):
        screen = Screen(args, root, 40)
        assert screen.end() == 0
        shown[" ".join(args)] = screen.raw
        screen.close()
    exported = shown.pop("threads export t")

    for text in shown.values():
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n").split("\n")
        assert max(map(len, lines)) <= 40
    assert "an answer that is a little" in " ".join(shown["runs show"].split())
    assert max(map(len, exported.split("\r\n"))) > 80

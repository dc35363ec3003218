"""Threads, compaction, context providers and plans in project files, and the commands on the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_do import Project
from llm_do.linker.linker import check_project
from tests.cli.cli_processes import BATCH, Ended, environment

ANSWERS = """
agents:
  main:
    - text: first
    - text: second
    - text: third
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with one agent and configured threads."""
    write(tmp_path, {"threads": {"history_limit": 9, "enabled_tools": ["a*"], "compaction": {"max_tokens": 5000}}})
    return tmp_path


def write(root: Path, manifest: dict[str, object]) -> None:
    base = {"version": 1, "agent_files": ["*.agent"], "entry": {"agent": "main"}, "model": "script:answers.yaml"}
    (root / "project.json").write_text(json.dumps({**base, **manifest}), encoding="utf-8")
    (root / "main.agent").write_text(
        "---\nname: main\ncompaction: {fraction: 0.5, strategies: [sliding_window]}\n---\nHi.\n", encoding="utf-8"
    )
    (root / "answers.yaml").write_text(ANSWERS, encoding="utf-8")


def do(root: Path, *args: str, stdin: str = "") -> Ended:
    """Run one command line in a folder."""
    return BATCH.run(args, root, stdin.encode(), environment(NO_COLOR="1"))


def test_threads_and_compaction_are_read_from_files(project: Path) -> None:
    linked = Project.load(project)

    assert linked.threads.config.history_limit == 9
    assert linked.threads.config.enabled_tools == ("a*",)
    assert linked.threads.config.compaction == {"max_tokens": 5000}
    assert (linked.registry.agent("main") or pytest.fail("it is gone")).compaction == {
        "fraction": 0.5,
        "strategies": ["sliding_window"],
    }


def test_a_store_that_does_not_exist_is_a_diagnostic(tmp_path: Path) -> None:
    write(tmp_path, {"threads": {"store": "mysql://here"}})

    report = check_project(tmp_path)

    assert report.project is None
    assert [item.code for item in report.diagnostics] == ["LD190"]
    assert "mysql" in report.diagnostics[0].message


def test_context_providers_are_linked_and_a_wrong_one_is_a_diagnostic(tmp_path: Path) -> None:
    write(tmp_path, {"python_files": ["p.py"], "context_providers": ["p.py:good"]})
    (tmp_path / "p.py").write_text("__all__ = []\ndef good(ctx): return 'x'\ndef bad(): return 'x'\n", encoding="utf-8")
    assert [each.__name__ for each in Project.load(tmp_path).context_providers] == ["good"]

    write(tmp_path, {"python_files": ["p.py"], "context_providers": ["p.py:good", "p.py:bad", "p.py:gone"]})
    codes = [item.code for item in check_project(tmp_path).diagnostics if item.severity == "error"]
    assert len(codes) == 2
    assert "LD212" in codes


@pytest.mark.slow
def test_a_conversation_continues_in_another_process_and_can_be_shown(project: Path) -> None:
    assert do(project, "run", "hello", "--thread", "t").out == "first\n"
    assert do(project, "run", "again", "--thread", "t").out == "second\n"
    assert do(project, "run", "hello", "--thread", "t", "--user", "ann").out == "first\n"

    assert [line.split()[:3] for line in do(project, "threads", "list").out.splitlines()] == [["t", "4", "messages"]]
    assert len(do(project, "threads", "list", "--all").out.splitlines()) == 2
    (listed,) = json.loads(do(project, "threads", "list", "--json").out)
    assert f"{listed['tokens']:,} tokens  -  " in do(project, "threads", "list").out
    assert listed["cost_usd"] is None
    shown = do(project, "threads", "show", "t").out
    assert "user: hello" in shown
    assert "assistant: second" in shown
    assert json.loads(do(project, "threads", "config", "t").out)["history_limit"] == 9
    runs = json.loads(do(project, "runs", "list", "--json").out)
    assert [run["status"] for run in runs] == ["completed"] * 3
    assert sum(run["usage"]["total_tokens"] for run in runs if run["user_id"] is None) == listed["tokens"]
    events = [
        json.loads(line) for line in do(project, "runs", "show", runs[0]["run_id"][:8], "--events").out.splitlines()
    ]
    assert [event["type"] for event in events][:1] == ["run_started"]
    assert events[-1]["output"] == "first"


@pytest.mark.slow
def test_settings_forks_branches_export_and_import(project: Path) -> None:
    for text in ("one", "two"):
        do(project, "run", text, "--thread", "t")

    changed = json.loads(
        do(project, "threads", "set", "t", "history_limit=4", "model_settings.temperature=0.5", "enabled_tools=").out
    )
    assert changed == {"history_limit": 4, "model_settings": {"temperature": 0.5}, "compaction": {"max_tokens": 5000}}
    assert do(project, "threads", "fork", "t", "copy", "--at", "2").out == "copy: 2 messages\n"
    assert do(project, "run", "other", "--thread", "copy").out == "second\n"
    assert do(project, "threads", "branch", "t", "--at", "2").out == "t: 2 messages\n"
    (branch,) = do(project, "threads", "branch", "t").out.splitlines()
    assert "second" in branch
    assert do(project, "threads", "branch", "t", "--to", branch.split()[0]).out == "t: 4 messages\n"

    exported = do(project, "threads", "export", "t").out
    assert do(project, "threads", "import", "-", "--as", "back", stdin=exported).out == "back: 4 messages\n"
    assert do(project, "threads", "export", "back").out.count("\n") == exported.count("\n") == 5
    assert do(project, "run", "three", "--thread", "back").out == "third\n"
    assert do(project, "threads", "delete", "t").code == 0
    assert [line.split()[0] for line in do(project, "threads", "list").out.splitlines()] == ["back", "copy"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda lines: lines[1:], "the import doesn't start with a thread"),
        (lambda lines: lines[:-1], "messages were exported"),
        (lambda lines: [*lines[:2], "{not json", *lines[3:]], "not JSON"),
        (lambda lines: [lines[0].replace('"version": 1', '"version": 7'), *lines[1:]], "version 7"),
        (lambda lines: [lines[0], lines[1].replace("user-prompt", "nonsense"), *lines[2:]], "can't be read"),
        (lambda lines: lines, "thread 't' already exists"),
    ],
)
def test_an_invalid_import_stores_nothing_and_reports_the_line(project: Path, spoil: object, says: str) -> None:
    do(project, "run", "one", "--thread", "t")
    lines = spoil(do(project, "threads", "export", "t").out.splitlines())  # type: ignore[operator]

    failed = do(project, "threads", "import", "-", stdin="\n".join(lines))

    assert failed.code == 2
    assert says in failed.err
    assert len(do(project, "threads", "list").out.splitlines()) == 1


def test_only_the_latest_threads_are_listed(project: Path) -> None:
    for name in ("a", "b", "c"):
        do(project, "threads", "set", name, "history_limit=4")

    listed = do(project, "threads", "list", "--limit", "2")

    assert [line.split()[0] for line in listed.out.splitlines()] == ["c", "b"]
    assert "only the latest 2 threads are shown" in listed.err
    every = do(project, "threads", "list", "--limit", "3")
    assert [line.split()[0] for line in every.out.splitlines()] == ["c", "b", "a"]
    assert "latest" not in every.err


def test_nothing_is_stored_with_recording_turned_off(project: Path) -> None:
    assert do(project, "run", "hello", "--no-record").out == "first\n"
    assert not (project / ".llm-do").exists()
    refused = do(project, "run", "hello", "--no-record", "--thread", "t")
    assert refused.code == 2
    assert "exclude each other" in refused.err
    nothing = do(project, "threads", "list")
    assert nothing.code == 2
    assert "nothing has been recorded" in nothing.err


@pytest.mark.slow
def test_a_plan_in_a_manifest_runs_with_the_default_agents(tmp_path: Path) -> None:
    write(tmp_path, {"flows": {"project": {"mode": "plan"}}, "entry": {"flow": "project"}})
    (tmp_path / "answers.yaml").write_text(
        "agents:\n"
        "  planner:\n    - output: {items: [read, write]}\n"
        "  executor:\n    - text: done it\n"
        "  synthesiser:\n    - expect: write\n      text: all is done\n",
        encoding="utf-8",
    )

    done = do(tmp_path, "run", "make a report", "--thread", "t")

    assert done.out == "all is done\n", done.err
    assert do(tmp_path, "run", "--no-record", "make it").out == "all is done\n"

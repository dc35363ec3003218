"""`llm-do lock`, and the options of a run that concern the lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import run_forked, write_project
from tests.cli.cli_terminal import Screen
from tests.support.mcp_server import changing_server
from tests.support.tables import each_row

SEND = "- tools: [{name: send, args: {to: ann}}]\n- text: done\n"
RULE = {"rule": "send(to=bob)"}


def lock_of(root: Path) -> Any:
    return json.loads((root / "llm-do.lock").read_text())


def write_lock(root: Path, *approvals: Any) -> None:
    (root / "llm-do.lock").write_text(json.dumps({"version": 1, "servers": {}, "approvals": list(approvals)}))


def test_a_lock_is_written_and_keeps_its_approvals(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    missing = run_forked("lock", "--check", cwd=root)
    assert (missing.code, missing.out, missing.err) == (3, "", "there is no llm-do.lock; `llm-do lock` writes it\n")
    assert not (root / "llm-do.lock").exists()
    assert (run_forked("lock", cwd=root).code, lock_of(root)) == (0, {"version": 1, "servers": {}, "approvals": []})
    write_lock(root, RULE, {"rule": "send", "until": "2020-01-01"})
    assert run_forked("lock", cwd=root).code == 0
    assert lock_of(root)["approvals"] == [{"rule": "send", "until": "2020-01-01"}, RULE]
    expired = run_forked("lock", "--check", cwd=root)
    assert expired.code == 3
    assert "llm-do.lock:5:16: warning[LD653]" in expired.err + expired.out


@pytest.mark.slow
def test_a_conflict_is_shown_with_its_line_and_nothing_is_written(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    text = '{\n<<<<<<< HEAD\n  "version": 1,\n=======\n>>>>>>> other\n}\n'
    (root / "llm-do.lock").write_text(text)
    for args in (["lock"], ["lock", "--check"], ["run", "go"], ["check"]):
        done = run_forked(*args, cwd=root)
        assert done.code == 3, args
        assert "llm-do.lock:2:1: error[LD650]: a merge conflict isn't resolved here" in done.out + done.err
    assert (root / "llm-do.lock").read_text() == text


def test_a_denied_call_prints_its_entry_which_then_allows_it(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    denied = run_forked("run", "go", cwd=root)
    assert denied.code == 4
    said = "review this entry and add it to `approvals` in llm-do.lock:\n"
    head, _, entry = denied.err.partition(f"to allow exactly this, {said}")
    assert "send is denied" in head
    data = run_forked("run", "go", "--format", "json", cwd=root).json
    assert data["denials"][0]["needed"] == json.loads(entry)
    write_lock(root, json.loads(entry))
    assert run_forked("run", "go", "--frozen", cwd=root).code == 0
    write_lock(root, {**json.loads(entry), "args": {"to": "bob"}})
    assert run_forked("run", "go", "--frozen", cwd=root).code == 4


@each_row("runtime", [{"max_steps": 2}, {"return_permission_errors": False}])
def test_calls_that_are_denied_for_the_same_reason_are_printed_once(tmp_path: Path, runtime: dict[str, Any]) -> None:
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    twice = SEND.splitlines(keepends=True)[0] * 2
    root = write_project(tmp_path / min(runtime), twice, manifest=json.dumps({**manifest, "runtime": runtime}))

    denied = run_forked("run", "go", cwd=root)

    assert denied.code == 4
    assert denied.err.count("send is denied: no terminal to ask on") == 1
    _, _, entry = denied.err.partition("review this entry and add it to `approvals` in llm-do.lock:\n")
    assert json.loads(entry)["args"] == {"to": "ann", "text": ""}


def test_a_frozen_durable_run_is_denied_at_once_and_leaves_no_question(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    denied = run_forked("run", "go", "--durable", "--frozen", "--format", "json", cwd=root)
    assert (denied.code, denied.json["status"]) == (4, "denied")
    entry = denied.json["denials"][0]["needed"]
    assert (entry["tool"], entry["args"]) == ("send", {"to": "ann", "text": ""})
    assert run_forked("approvals", "pending", cwd=root).out.strip() == "no questions"
    write_lock(root, entry)
    assert run_forked("run", "go", "--durable", "--frozen", cwd=root).code == 0


@pytest.mark.slow
def test_a_frozen_map_prints_what_the_lock_needs_once(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    (root / "in.jsonl").write_text('"a"\n"b"\n')
    denied = run_forked("map", ".", "in.jsonl", "--frozen", cwd=root)
    assert denied.code == 4
    lines = [json.loads(line) for line in denied.out.splitlines()]
    assert [(line["status"], len(line["needed"])) for line in lines] == [("denied", 1)] * 2
    _, _, entry = denied.err.partition("review this entry and add it to `approvals` in llm-do.lock:\n")
    assert json.loads(entry) == lines[0]["needed"][0] == lines[1]["needed"][0]
    again = run_forked("map", ".", "in.jsonl", "--frozen", cwd=root)
    assert (again.code, again.out) == (4, denied.out)
    write_lock(root, lines[0]["needed"][0])
    retried = run_forked("map", ".", "in.jsonl", "--frozen", "--retry", "failed", "--accept-changes", cwd=root)
    assert (retried.code, [json.loads(line)["status"] for line in retried.out.splitlines()]) == (0, ["completed"] * 2)


@pytest.mark.slow
def test_what_the_lock_allowed_an_agent_holds_when_a_frozen_run_is_resumed(tmp_path: Path) -> None:
    main = "---\nname: main\nmodel: script:answers.yaml\ntools: [helper]\n---\nHelp.\n"
    helper = "---\nname: helper\nmodel: script:helper.yaml\ntoolsets: [ask_user]\n---\nHelp.\n"
    manifest = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "approvals": {"ask": ["helper"]},
    }
    root = write_project(
        tmp_path,
        "- tools: [{name: helper, args: {input: go}}]\n- text: done\n",
        agent=main,
        manifest=json.dumps(manifest),
    )
    (root / "helper.agent").write_text(helper)
    (root / "helper.yaml").write_text("- tools: [{name: ask_user, args: {question: Which?}}]\n- text: well\n")
    write_lock(root, {"rule": "helper"})
    waiting = run_forked("run", "go", "--durable", "--frozen", "--run-id", "one", cwd=root)
    assert waiting.code == 5, waiting.err
    write_lock(root)
    asked = run_forked("approvals", "pending", cwd=root).out.split()[0]
    assert run_forked("approvals", "answer", asked, "this", cwd=root).code == 0
    resumed = run_forked("resume", "one", "--accept-changes", cwd=root)
    assert (resumed.code, resumed.out) == (0, "done\n"), resumed.err


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    for option in (["--approve-all"], ["--reject-all"], ["--allow", "send"]):
        done = run_forked("run", "go", "--frozen", *option, cwd=root)
        assert (done.code, f"{option[0]} and --frozen exclude each other" in done.err) == (2, True)
    done = run_forked("run", "go", "--record-approvals", cwd=root)
    assert (done.code, "--record-approvals asks on a terminal" in done.err) == (2, True)


@pytest.mark.slow
def test_answers_are_kept_in_the_lock_if_a_person_says_so(tmp_path: Path) -> None:
    root = write_project(tmp_path, SEND)
    for keeps in ("n", "y"):
        screen = Screen(["run", "go", "--record-approvals"], root)
        screen.wait("allow?")
        screen.type("y\r")
        screen.wait("Keep this approval in llm-do.lock")
        screen.type(f"{keeps}\r")
        if keeps == "n":
            screen.wait("nothing was kept")
        else:
            screen.wait("Why")
            screen.type("tested\r")
            screen.wait("wrote llm-do.lock")
        assert screen.end() == 0
        assert (root / "llm-do.lock").exists() == (keeps == "y")
    [entry] = lock_of(root)["approvals"]
    assert (entry["agent"], entry["tool"], entry["args"], entry["why"]) == (
        "main",
        "send",
        {"to": "ann", "text": ""},
        "tested",
    )
    assert run_forked("run", "go", "--frozen", cwd=root).code == 0


@pytest.mark.slow
def test_changes_of_a_server_are_shown_and_locked(tmp_path: Path) -> None:
    with changing_server() as server:
        root = write_project(
            tmp_path,
            "- tools: [{name: kb_find, args: {text: a}}]\n- text: done\n",
            manifest=json.dumps(
                {
                    "version": 1,
                    "entry": {"agent": "main"},
                    "agent_files": ["main.agent"],
                    "toolsets": {"kb": {"type": "mcp", "url": server.url, "timeout": 30}},
                    "approvals": {"allow": ["kb_*"]},
                }
            ),
            agent="---\nname: main\nmodel: script:answers.yaml\ntoolsets: [kb]\n---\nHelp.\n",
        )
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        server.tools = [{"name": "find", "description": "Find.", "inputSchema": schema}]
        first = run_forked("lock", cwd=root)
        assert (first.code, first.err) == (0, "wrote llm-do.lock\n")
        assert "kb: find is new\n  description\n  +  Find.\n" in first.out
        assert lock_of(root)["servers"]["kb"]["url"] == server.url
        assert run_forked("lock", "--check", cwd=root).code == 0
        assert run_forked("run", "go", "--frozen", cwd=root).code == 0
        text = (root / "llm-do.lock").read_text()
        server.tools = [{"name": "find", "description": "Find\x1b[31m all.", "inputSchema": schema}]
        changed = run_forked("lock", "--check", cwd=root)
        assert (changed.code, (root / "llm-do.lock").read_text()) == (3, text)
        assert "kb: find has changed\n  description\n  -  Find.\n  +  Find" in changed.out
        assert "\x1b" not in changed.out
        assert run_forked("run", "go", cwd=root).code == 4
        assert run_forked("run", "go", "--frozen", cwd=root).code == 3
        assert run_forked("lock", cwd=root).code == 0
        assert run_forked("run", "go", "--frozen", cwd=root).code == 0
    gone = run_forked("lock", cwd=root)
    assert (gone.code, "error: kb: " in gone.err) == (1, True)
    assert "find" in lock_of(root)["servers"]["kb"]["tools"]

"""The approvals of `llm-do.lock`: they answer questions, on every machine alike, and override nothing."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, RunResult, Runtime
from llm_do.formats.lock import Lock
from tests.support.history import results_of
from tests.support.runs import Answers, carry_out

TOOLS = '''\
def send(to: str, n: int = 1) -> str:
    """Send a text."""
    return f"sent to {to}"


TOOLS = [send]
'''
AGENT = (
    "---\nname: {name}\nmodel: script:{name}.yaml\ntools: [send{more}]\ntoolsets: [filesystem_project]\n---\nHelp.\n"
)
YESTERDAY = (datetime.datetime.now(tz=datetime.UTC).date() - datetime.timedelta(days=1)).isoformat()


def project(root: Path, turns: str, approvals: Any = (), rules: Mapping[str, Any] | None = None) -> Path:
    """A project whose `main` makes these calls; `helper` makes the same."""
    root.mkdir(parents=True, exist_ok=True)
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    (root / "project.json").write_text(json.dumps({**manifest, "approvals": rules or {}}))
    (root / "tools.py").write_text(TOOLS)
    (root / "main.agent").write_text(AGENT.format(name="main", more=", helper"))
    (root / "helper.agent").write_text(AGENT.format(name="helper", more=""))
    answers = f"- tools:\n    - {turns}\n- text: done\n"
    (root / "main.yaml").write_text(answers)
    (root / "helper.yaml").write_text(answers)
    (root / "llm-do.lock").write_text(json.dumps({"version": 1, "servers": {}, "approvals": list(approvals)}))
    return root


def run(root: Path, **options: Any) -> RunResult:
    result = carry_out(Runtime(Project.load(root), **options))
    assert result.error is None, result.error
    return result


def outcome(result: RunResult) -> str:
    return results_of(result.messages)[0][1]


SEND = "{name: send, args: {to: ann}}"
WRITE = "{name: write_file, args: {path: out/a.md, content: text}}"


def needed(root: Path, turns: str, **options: Any) -> dict[str, Any]:
    """The entry that a run without a person asks for."""
    result = run(project(root, turns), **options)
    assert (result.status, outcome(result)) == ("denied", "denied")
    entry = result.to_dict()["denials"][0]["needed"]
    assert json.loads(json.dumps(entry)) == entry
    return dict(entry)


@pytest.mark.parametrize("turns", [SEND, WRITE])
def test_the_entry_that_a_denial_names_answers_the_question_on_another_machine(tmp_path: Path, turns: str) -> None:
    entry = needed(tmp_path / "here", turns)
    for options in ({}, {"frozen": True}, {"approvals": Answers(["deny"])}):
        result = run(project(tmp_path / "there", turns, [entry]), **options)
        assert (outcome(result), result.denials) == ("success", [])
        assert result.approvals[0].reason.endswith("(llm-do.lock:1)")


def test_a_digest_for_another_agent_argument_tool_or_path_is_refused(tmp_path: Path) -> None:
    entry = needed(tmp_path / "a", SEND)
    written = needed(tmp_path / "b", WRITE)
    for index, (turns, granted) in enumerate(
        [
            ("{name: send, args: {to: bob}}", entry),
            ("{name: send, args: {to: ann, n: 2}}", entry),
            ("{name: write_file, args: {path: out/b.md, content: text}}", written),
            ("{name: write_file, args: {path: out/a.md, content: other}}", written),
            (SEND, {**entry, "agent": "helper"}),
            (SEND, {**entry, "tool": "write_file"}),
            (SEND, {**entry, "args": {"to": "bob"}}),
        ]
    ):
        assert outcome(run(project(tmp_path / f"c{index}", turns, [granted]))) == "denied", turns
    root = project(tmp_path / "d", SEND, [entry])
    assert outcome(run(root)) == "success"
    assert outcome(carry_out(Runtime(Project.load(root)), entry="helper")) == "denied"


def test_a_path_that_leads_elsewhere_now_is_another_call(tmp_path: Path) -> None:
    entry = needed(tmp_path / "a", WRITE)
    root = project(tmp_path / "b", WRITE, [entry])
    (root / "real").mkdir()
    (root / "out").symlink_to("real")
    assert outcome(run(root)) == "denied"


def test_a_rule_in_the_lock_holds_for_its_agent_until_its_day(tmp_path: Path) -> None:
    for index, (entry, expected) in enumerate(
        [
            ({"agent": "main", "rule": "send(to=ann)", "why": "tested"}, "success"),
            ({"rule": "main:send"}, "success"),
            ({"agent": "helper", "rule": "send"}, "denied"),
            ({"agent": "main", "rule": "send", "until": YESTERDAY}, "denied"),
            ({"agent": "main", "rule": "send", "until": "2999-01-01"}, "success"),
        ]
    ):
        assert outcome(run(project(tmp_path / str(index), SEND, [entry]))) == expected, entry


@pytest.mark.slow
def test_the_lock_overrides_no_deny_no_person_only_question_and_no_protected_file(tmp_path: Path) -> None:
    everything = {"rule": "*"}
    root = project(tmp_path / "a", SEND, [everything], {"deny": ["send"]})
    assert outcome(run(root)) == "denied"
    assert run(root).denials[0].needed is None
    for name in ("main.agent", "project.json", "llm-do.lock", "tools.py", ".env"):
        root = project(tmp_path / name, f"{{name: write_file, args: {{path: {name}, content: x}}}}", [everything])
        for options in ({}, {"frozen": True}, {"approvals": "approve_all"}):
            result = run(root, **options)
            assert outcome(result) == "denied", name
            assert result.denials[0].needed is None


def test_a_frozen_run_is_answered_by_the_lock_alone(tmp_path: Path) -> None:
    root = project(tmp_path, SEND, [])
    assert outcome(run(root, allow=["send"])) == "success"
    for options in ({"allow": ["send"]}, {"approvals": "approve_all"}, {"approvals": Answers(["once"])}):
        result = run(root, frozen=True, **options)
        assert (outcome(result), result.exit_code) == ("denied", 4)
        assert result.denials[0].reason == "send is denied: the run is frozen, and llm-do.lock has no approval for it"
        assert result.denials[0].needed is not None
    # The project's own rules still hold.
    assert outcome(run(project(tmp_path / "b", SEND, [], {"allow": ["send"]}), frozen=True)) == "success"


def test_answers_that_could_be_kept_are_known(tmp_path: Path) -> None:
    for answer, kept in (("once", 1), ("session", 1), ("deny", 0)):
        runtime = Runtime(Project.load(project(tmp_path, SEND)), approvals=Answers([answer]))
        runtime.approver.granted = []
        carry_out(runtime)
        assert len(runtime.approver.granted) == kept
    runtime = Runtime(
        Project.load(project(tmp_path, "{name: write_file, args: {path: main.agent, content: x}}")),
        approvals=Answers(["once"]),
    )
    runtime.approver.granted = []
    carry_out(runtime)
    assert runtime.approver.granted == []


def test_a_project_without_a_lock_has_none(tmp_path: Path) -> None:
    root = project(tmp_path, SEND)
    assert Project.load(root).lock == Lock()
    (root / "llm-do.lock").unlink()
    assert Project.load(root).lock is None

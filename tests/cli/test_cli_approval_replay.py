"""`llm-do approvals replay`: recorded calls decided about again, and rules that would have spared questions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime
from llm_do.cli.actions.approvals.replay import read_rules, recorded_calls, replay_data
from llm_do.errors import LlmDoError, UsageError
from llm_do.linker.proofs.policy_replay import RecordedCall, Replayed, Replayer, Then
from llm_do.linker.proofs.rule_proposals import propose_rules
from llm_do.policy.proofs import check_examples
from llm_do.policy.rules import build_policy
from llm_do.runtime.record.stored_records import Observation
from llm_do.ui.reports.approval_replay import replay_lines
from tests.linker.conftest import agent, manifest, write_files
from tests.support.tables import each_row

TOOLS = """
from llm_do import tool
@tool(primary="to")
def send(to: str, text: str = "") -> str:
    "Send a letter."
    return to
TOOLS = [send]
"""


def project_at(root: Path, **keys: Any) -> Project:
    """A project with files, commands and a tool of its own."""
    keys.setdefault("toolsets", {"term": {"type": "shell", "allow": ["git status"]}})
    files = {
        "project.json": manifest(python_files=["tools.py"], **keys),
        "main.agent": agent("main", "tools: [send]\ntoolsets: [filesystem_project, term]"),
        "tools.py": TOOLS,
    }
    return Project.load(write_files(root, files))


def model_of(*calls: ToolCallPart) -> FunctionModel:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(list(calls)) if len(messages) == 1 else ModelResponse([TextPart("done")])

    return FunctionModel(answer)


def record(project: Project, *runs: Sequence[ToolCallPart]) -> None:
    """Record runs that make these calls; a person allows files in out/ and letters to ann, and nothing else."""

    async def person(request: ApprovalRequest) -> ApprovalDecision:
        target = str(request.args.get("path") or request.args.get("to"))
        return ApprovalDecision("once" if target.startswith(("out/", "ann")) else "deny")

    async def run_all() -> None:
        for calls in runs:
            runtime = Runtime(project, approvals=person, record=True, model=model_of(*calls))
            try:
                await runtime.execute("go")
            finally:
                await runtime.aclose()

    asyncio.run(run_all())


def write(path: str) -> ToolCallPart:
    return ToolCallPart("write_file", {"path": path, "content": "x"})


def send(to: str, text: str = "") -> ToolCallPart:
    return ToolCallPart("send", {"to": to, "text": text})


def test_recorded_calls_are_decided_about_by_other_rules(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    record(
        project,
        [write("out/a.md"), write("out/b.md"), write("notes.txt"), ToolCallPart("read_file", {"path": "main.agent"})],
        [write("out/c.md"), send("ann"), send("bob"), ToolCallPart("write_file", {"pth": "x"})],
    )
    data = replay_data(project)
    assert (data["calls"], data["runs"]) == (7, 2)  # a call with wrong arguments was never decided about
    assert data["then"] == {"approved": 4, "rejected": 2, "allowed": 1}
    assert data["now"] == {"ask": 6, "allow": 1}
    assert data["differences"] == []
    rules = tmp_path / "new.json"
    rules.write_text(json.dumps({"allow": ["write_file(out/**)"], "deny": ["send(bob)", "files.read(**)"]}))
    data = replay_data(project, rules=str(rules))
    changes = {(each["then"], each["now"], each["tool"]): (each["calls"], each["rule"]) for each in data["differences"]}
    assert changes == {
        ("approved", "allow", "write_file"): (3, "write_file(out/**)"),
        ("rejected", "deny", "send"): (1, "send(bob)"),
        ("allowed", "deny", "read_file"): (1, "files.read(**)"),
    }
    text = "\n".join(replay_lines({**data, "rules": "new.json"}))
    assert "7 calls of 2 runs, by new.json" in text
    assert "3  asked, allowed -> allowed  main write_file(path=out/a.md, content=x)  by write_file(out/**)" in text


def test_proposals_spare_questions_and_allow_nothing_that_was_denied(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    record(
        project,
        [write(f"out/{name}.md") for name in "abc"] + [write("out.md"), send("ann"), send("ann", "2"), send("bob")],
    )
    proposals = replay_data(project)["proposals"]
    assert [each["entry"]["rule"] for each in proposals] == ["main:write_file(out/**)", "main:send(ann)"]
    assert proposals[0]["entry"] == {
        "rule": "main:write_file(out/**)",
        "why": "would have spared 3 recorded questions",
        "allows": ["out/a.md", "out/b.md", "out/c.md"],
        "refuses": ["out.md"],
    }
    pasted = project_at(tmp_path, approvals={"allow": [each["entry"] for each in proposals]})
    assert list(pasted.warnings) == []
    data = replay_data(pasted)
    assert data["now"] == {"allow": 5, "ask": 2}
    assert data["proposals"] == []


def call(tool: str, then: Then = "approved", rule: str | None = None, /, **args: Any) -> RecordedCall:
    return RecordedCall("run", "main", "main", tool, args, then, rule)


def replayed(project: Project, calls: Sequence[RecordedCall], approvals: Mapping[str, Any]) -> list[Replayed]:
    policy, faults = build_policy(approvals)
    assert not faults
    replayer = Replayer(project, policy)
    return [replayer.replay(each) for each in calls]


@each_row(
    "recorded, approvals, now, reason",
    [
        (call("write_file", path="[redacted KEY]/a"), {"allow": ["write_file"]}, "unknown", "argument path"),
        (call("write_file", path="a", content="[redacted KEY]"), {"allow": ["write_file"]}, "allow", ""),
        (call("send", to="ann", text="[redacted]"), {"allow": ["send(text=x)"]}, "unknown", "argument text"),
        (RecordedCall("r", "main", "main", "send", None, "denied"), {}, "unknown", "weren't recorded"),
        (call("write_file", path="/etc/x"), {"deny": ["files.write(a/**)"]}, "unknown", "where its path leads"),
        (call("fly", to="ann"), {"allow": ["fly"]}, "unknown", "main has no tool fly"),
        (RecordedCall("r", "ghost", "ghost", "send", {}, "denied"), {}, "unknown", "no agent ghost"),
        (call("send", to="ann"), {"policy": "rules.py:f"}, "unknown", "rules.py:f may decide otherwise"),
        (call("send", to="ann"), {"policy": "rules.py:f", "deny": ["send"]}, "deny", "by the rule send"),
        (call("shell", "allowed", command="git status"), {}, "allow", ""),
        (call("shell", command="git push"), {"allow": ["shell(git *)"]}, "allow", ""),
        (call("shell", command="rm -r x"), {"allow": ["shell(git *)"]}, "ask", ""),
        # What a toolset decides by itself, by files that aren't there any more, it would decide again.
        (call("read_file", "denied", path=".env"), {}, "deny", ""),
        (call("read_file", "denied", "read_file", path="a"), {}, "allow", ""),
    ],
)
def test_what_is_not_recorded_whole_is_unknown(
    tmp_path: Path, recorded: RecordedCall, approvals: dict[str, Any], now: str, reason: str
) -> None:
    (found,) = replayed(project_at(tmp_path), [recorded], approvals)
    assert (found.now, reason in found.reason) == (now, True), found.reason


def test_a_denied_call_that_is_not_known_whole_forbids_rules_for_its_tool(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    calls = [call("write_file", path="out/a"), call("write_file", path="out/b")]
    assert [each.rule for each in propose_rules(replayed(project, calls, {}))] == ["main:write_file(out/**)"]
    hidden = call("write_file", "rejected", path="[redacted KEY]")
    assert propose_rules(replayed(project, [*calls, hidden], {})) == []


def test_examples_of_proposals_come_out_as_they_should(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    calls = [call("shell", command=f"git log -{number}") for number in range(1, 9)]
    calls += [
        call("shell", "rejected", command="git push"),
        call("shell", command="rm x"),
        call("shell", command="rm x"),
    ]
    found = propose_rules(replayed(project, calls, {}))
    assert [(each.rule, each.spared) for each in found] == [("main:shell(git log *)", 8), ("main:shell(rm x)", 2)]
    policy, faults = build_policy({"allow": [each.entry() for each in found]})
    tool = Replayer(project, policy).tools["main", "shell"]
    assert [*faults, *(fault for rule in policy.rules for fault in check_examples(rule, [tool.facts]))] == []


def test_events_of_other_versions_are_counted(tmp_path: Path) -> None:
    def event(kind: str, **data: Any) -> Observation:
        whole = {"call_id": "1", "tool_call_id": "t", "agent_name": "main", "path": "main", "tool_name": "send", **data}
        return Observation("run", 1, 0.0, kind, None, None, whole)

    asked = [event("tool_call", args={"to": "ann"}), event("approval_requested", rule="send", args={"to": "ann"})]
    calls, unread = recorded_calls(
        [event("tool_call", agent_name=None), *asked, event("approval_resolved", decision="allow", by="person")]
    )
    assert ([(each.then, each.rule) for each in calls], unread) == ([("approved", "send")], 1)
    cancelled = event("approval_resolved", decision="deny", by="cancelled")
    assert recorded_calls([*asked, cancelled, event("tool_result", status="denied")]) == ([], 0)
    unattended = [event("tool_call", args="no json"), event("tool_result", status="denied")]
    assert [(each.then, each.args) for each in recorded_calls(unattended)[0]] == [("denied", None)]


@each_row(
    "text, message",
    [
        ("{", "rules.json:1"),
        ("[]", "rules.json:1"),
        ('{"alow": []}', "unknown key"),
        ('{"allow": ["send("]}', "can't be read"),
        ('{"version": 1, "approvals": {"allow": [3]}}', "rules.json:1"),
    ],
)
def test_rules_that_cannot_be_read_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    project = project_at(tmp_path)
    file = tmp_path / "rules.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_rules(file, project)
    assert message in caught.value.message
    assert str(file) in caught.value.message
    with pytest.raises(UsageError, match="can't be read"):
        read_rules(tmp_path / "nowhere.json", project)


def test_a_manifest_is_a_file_of_rules_and_its_test_cases_are_checked(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    rule = {"rule": "write_file(out/**)", "allows": ["in/a"]}
    (tmp_path / "other.json").write_text(json.dumps(manifest(approvals={"allow": [rule, "fly"]})))
    policy, warnings = read_rules(tmp_path / "other.json", project)
    assert [each.text for each in policy.rules] == ["write_file(out/**)", "fly"]
    assert ["in/a" in warnings[0], "the rule fly matches no tool" in warnings[1]] == [True, True]


def test_a_damaged_store_and_an_unknown_run_are_errors(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    record(project, [send("ann")])
    with pytest.raises(UsageError, match="no run has the id 'x'"):
        replay_data(project, run="x")
    assert replay_data(project, since=time.time() + 60)["calls"] == 0
    assert replay_data(project, since=time.time() - 3600)["calls"] == 1
    (tmp_path / ".llm-do" / "state.db").write_bytes(b"no database" * 100)
    with pytest.raises(LlmDoError) as caught:
        replay_data(project)
    assert caught.value.hint


@pytest.mark.slow
def test_ten_thousand_calls_take_seconds(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    calls = [
        call("write_file", path=f"out/{number % 500}/{number}.md", content=str(number)) for number in range(10_000)
    ]
    began = time.process_time()
    found = replayed(project, calls, {"allow": ["write_file(out/1/**)"], "deny": ["write_file(in/**)"]})
    assert propose_rules(found)
    assert time.process_time() - began < 20

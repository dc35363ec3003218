from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime
from llm_do.errors import StoreError
from llm_do.policy.digest import call_digest
from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval import saved_approvals
from llm_do.testing import play

CALL = ToolCallInfo("send", {"to": "ann", "n": 1}, resolved={"to": (("git", "log"),)})


def test_a_saved_answer_to_one_call_applies_to_that_call_only(tmp_path: Path) -> None:
    saved_approvals.add_call(tmp_path, CALL)

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.digests == {call_digest(CALL): ".llm-do/approvals.json:4"}
    assert call_digest(ToolCallInfo("send", {"to": "ann", "n": 2}, resolved=CALL.resolved)) not in found.digests
    assert call_digest(ToolCallInfo("send", CALL.args, path="main/b", resolved=CALL.resolved)) not in found.digests


def test_a_saved_answer_through_a_link_applies_while_the_links_target_is_the_same(tmp_path: Path) -> None:
    linked = ToolCallInfo("write_file", {"path": "now/a"}, primary="path", resolved={"path": ("now/a", "releases/1/a")})
    moved = ToolCallInfo("write_file", {"path": "now/a"}, primary="path", resolved={"path": ("now/a", "releases/2/a")})
    saved_approvals.add_call(tmp_path, linked)

    digests = saved_approvals.load_saved_approvals(tmp_path).digests

    assert call_digest(linked) in digests
    assert call_digest(moved) not in digests


def test_an_edited_call_is_no_longer_allowed(tmp_path: Path) -> None:
    saved_approvals.add_call(tmp_path, CALL)
    file = tmp_path / saved_approvals.FILE
    file.write_text(file.read_text().replace('"ann"', '"bob"'))

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.stored == ()
    assert [*map(str, found.faults)] == [
        ".llm-do/approvals.json:4: the call was edited and isn't the one that was allowed; write a rule instead"
    ]


def test_answers_are_added_once_and_can_be_revoked(tmp_path: Path) -> None:
    saved_approvals.add_rule(tmp_path, "send(to=ann)")
    saved_approvals.add_rule(tmp_path, "send(to=ann)")
    saved_approvals.add_call(tmp_path, CALL)
    assert [item.text for item in saved_approvals.load_saved_approvals(tmp_path).stored] == [
        "send(to=ann)",
        'main: send with exactly {"to": "ann", "n": 1}',
    ]

    saved_approvals.revoke(tmp_path, saved_approvals.load_saved_approvals(tmp_path).stored[:1])

    assert len(saved_approvals.load_saved_approvals(tmp_path).stored) == 1
    saved_approvals.clear(tmp_path)
    assert saved_approvals.load_saved_approvals(tmp_path) == saved_approvals.SavedApprovals()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "1: "),
        ('{"version": 2, "allow": []}', '1: it is not {"version": 1'),
        ('{"version": 1, "allow": [3]}', "1: an entry is a rule or an object"),
        ('{"version": 1,\n "allow": ["send("]}', "2: the rule send( can't be read"),
        ('{"version": 1, "allow": [{"rule": "send", "why": "x"}]}', "1: unknown key 'why'"),
        ('{"version": 1, "allow": [{"call": {}, "digest": "00"}]}', "1: the call was edited"),
        ('{"version": 1, "allow": [{}]}', "1: an entry has a `rule`"),
    ],
)
def test_an_unreadable_entry_allows_nothing_and_is_reported_with_its_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    (tmp_path / ".llm-do").mkdir()
    (tmp_path / saved_approvals.FILE).write_text(text)

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.stored == ()
    assert str(found.faults[0]).startswith(f".llm-do/approvals.json:{fault}")


def test_a_folder_in_place_of_the_file_allows_nothing_and_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / saved_approvals.FILE).mkdir(parents=True)

    [fault] = saved_approvals.load_saved_approvals(tmp_path).faults

    assert str(fault) == ".llm-do/approvals.json: it is a folder, not a file"
    assert (fault.message, fault.line) == ("it is a folder, not a file", None)


def test_an_invalid_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".llm-do").mkdir()
    (tmp_path / saved_approvals.FILE).write_text("{ mine")

    with pytest.raises(StoreError):
        saved_approvals.add_rule(tmp_path, "send")

    assert (tmp_path / saved_approvals.FILE).read_text() == "{ mine"


def test_answers_are_neither_read_nor_written_through_a_link(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    saved_approvals.add_rule(elsewhere, "send")
    (project / ".llm-do").symlink_to(elsewhere / ".llm-do")

    assert saved_approvals.load_saved_approvals(project).stored == ()
    with pytest.raises(StoreError):
        saved_approvals.add_rule(project, "shout")


def write_project(root: Path, **approvals: object) -> Path:
    (root / "tools.py").write_text(
        "def send(to: str) -> str:\n    'Send.'\n    return f'sent to {to}'\nTOOLS = [send]\n"
    )
    (root / "main.agent").write_text("---\nname: main\ntools: [send]\n---\nHelp.\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    (root / "project.json").write_text(json.dumps({**manifest, "approvals": approvals}))
    return root


def sends(*names: str) -> list[dict[str, object]]:
    return [*({"tools": [{"name": "send", "args": {"to": name}}]} for name in names), {"text": "over"}]


def test_a_permanent_answer_outlasts_the_session(tmp_path: Path) -> None:
    root = write_project(tmp_path)

    first = play(root, "x", answers=sends("ann"), approvals="always")
    second = play(root, "x", answers=sends("ann", "bob"), approvals="deny")

    assert [len(first.questions), len(second.questions)] == [1, 1]
    assert [call.status for call in second.calls] == ["success", "denied"]
    assert second.result.approvals[0].reason == "send was allowed by an earlier answer (.llm-do/approvals.json:4)"


def test_an_answer_with_a_rule_covers_every_call_the_rule_covers(tmp_path: Path) -> None:
    root = write_project(tmp_path, ask=["send"])
    saved_approvals.add_rule(root, "main:send(to=a*)")

    played = play(root, "x", answers=sends("ann", "adam", "bob"), approvals="deny")

    assert [call.status for call in played.calls] == ["success", "success", "denied"]
    assert played.result.approvals[0].rule == "main:send(to=a*)"


def test_no_answer_overrides_a_denial(tmp_path: Path) -> None:
    root = write_project(tmp_path, deny=["send(to=bob)"])
    saved_approvals.add_rule(root, "send")

    played = play(root, "x", answers=sends("ann", "bob"), approvals="approve_all")

    assert [call.status for call in played.calls] == ["success", "denied"]


def test_a_rule_from_a_callback_lasts_for_the_session_and_is_not_written(tmp_path: Path) -> None:
    asked: list[str] = []

    async def callback(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request.args["to"])
        return ApprovalDecision("session", pattern="main:send(to=a*)")

    played = play(write_project(tmp_path), "x", answers=sends("ann", "adam"), approvals="once")
    assert len(played.questions) == 2

    (tmp_path / "answers.yaml").write_text(json.dumps(sends("ann", "adam")))
    runtime = Runtime(Project.load(tmp_path), approvals=callback, model=f"script:{tmp_path}/answers.yaml")
    asyncio.run(runtime.run("x"))

    assert asked == ["ann"]
    assert not (tmp_path / saved_approvals.FILE).exists()


def test_an_answer_with_an_invalid_rule_applies_once(tmp_path: Path) -> None:
    async def callback(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision("always", pattern="send(")

    root = write_project(tmp_path)
    (root / "answers.yaml").write_text(json.dumps(sends("ann", "ann")))
    runtime = Runtime(Project.load(root), approvals=callback, model=f"script:{root}/answers.yaml")
    warned: list[str] = []
    runtime.on("warning", lambda event: warned.append(event.message))  # type: ignore[union-attr]

    asyncio.run(runtime.run("x"))

    assert len(warned) == 2
    assert "is not kept" in warned[0]
    assert not runtime.approver.session_digests

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime
from llm_do.errors import StoreError
from llm_do.policy.digest import call_digest
from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval import found_approvals, saved_approvals
from llm_do.testing import play


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def saved_file(root: Path) -> Path:
    file = saved_approvals.answers_file(root).path
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def write_saved(root: Path, text: str) -> Path:
    file = saved_file(root)
    file.write_text(text.replace('{"version": 1,', f'{{"version": 1, "project": {json.dumps(str(root))},', 1))
    file.chmod(0o600)
    return file


CALL = ToolCallInfo("send", {"to": "ann", "n": 1}, resolved={"to": (("git", "log"),)})


def test_a_saved_answer_to_one_call_applies_to_that_call_only(tmp_path: Path) -> None:
    saved_approvals.add_call(tmp_path, CALL)

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.digests == {call_digest(CALL): f"{saved_file(tmp_path)}:5"}
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
    file = saved_file(tmp_path)
    file.write_text(file.read_text().replace('"ann"', '"bob"'))

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.stored == ()
    assert [*map(str, found.faults)] == [
        f"{file}:5: the call was edited and isn't the one that was allowed; write a rule instead"
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
    file = write_saved(tmp_path, text)

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert found.stored == ()
    assert str(found.faults[0]).startswith(f"{file}:{fault}")


def test_a_folder_in_place_of_the_file_allows_nothing_and_is_reported_once(tmp_path: Path) -> None:
    saved_file(tmp_path).mkdir()

    [fault] = saved_approvals.load_saved_approvals(tmp_path).faults

    assert fault.file == str(saved_file(tmp_path))
    assert fault.line is None


def test_a_file_of_another_project_allows_nothing(tmp_path: Path) -> None:
    other = tmp_path / "other"
    saved_approvals.add_rule(other, "send")
    saved_file(other).rename(saved_file(tmp_path))

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert (found.stored, found.faults[0].message) == ((), "it belongs to another project")
    with pytest.raises(StoreError):
        saved_approvals.add_rule(tmp_path, "send")


def test_an_invalid_file_is_not_overwritten(tmp_path: Path) -> None:
    file = write_saved(tmp_path, "{ mine")

    with pytest.raises(StoreError):
        saved_approvals.add_rule(tmp_path, "send")

    assert file.read_text() == "{ mine"


def test_answers_are_kept_outside_of_the_project_where_only_their_owner_reads_them(tmp_path: Path) -> None:
    saved_approvals.add_rule(tmp_path / "project", "send")
    (tmp_path / "link").symlink_to("project")

    assert not (tmp_path / "project").exists()
    assert saved_file(tmp_path / "project").stat().st_mode & 0o777 == 0o600
    assert len(saved_approvals.load_saved_approvals(tmp_path / "link").stored) == 1
    assert saved_approvals.load_saved_approvals(tmp_path / "project2").stored == ()


def test_answers_that_cannot_be_kept_are_an_error_with_a_hint(tmp_path: Path, state: Path) -> None:
    (state / "llm-do").write_text("")

    with pytest.raises(StoreError, match="can't be saved") as caught:
        saved_approvals.add_rule(tmp_path, "send")
    assert "XDG_STATE_HOME" in str(caught.value.hint)
    assert saved_approvals.load_saved_approvals(tmp_path).stored == ()


FOUND = '{"version": 1, "allow": [\n"send",\n"shell(git log *)"]}'


def write_found(root: Path, text: str = FOUND) -> Path:
    (root / ".llm-do").mkdir(parents=True, exist_ok=True)
    file = root / found_approvals.FILE
    file.write_text(text)
    return file


def test_a_file_in_the_folder_is_read_but_allows_nothing(tmp_path: Path) -> None:
    root = write_project(tmp_path)
    write_found(root)

    assert [item.place for item in found_approvals.load_found_approvals(root).stored] == [
        ".llm-do/approvals.json:2",
        ".llm-do/approvals.json:3",
    ]
    played = play(root, "x", answers=sends("ann"), approvals="deny")
    assert [call.status for call in played.calls] == ["denied"]


def test_a_file_in_the_folder_is_moved_once(tmp_path: Path) -> None:
    file = write_found(tmp_path)

    assert found_approvals.move_found_approvals(tmp_path) == 2
    assert not file.exists()
    assert [item.text for item in saved_approvals.load_saved_approvals(tmp_path).stored] == ["send", "shell(git log *)"]

    write_found(tmp_path, '{"version": 1, "allow": ["*"]}')
    assert found_approvals.move_found_approvals(tmp_path) == 0
    assert len(saved_approvals.load_saved_approvals(tmp_path).stored) == 2


def test_a_folder_without_such_a_file_takes_none_over_later(tmp_path: Path) -> None:
    assert found_approvals.move_found_approvals(tmp_path) == 0
    write_found(tmp_path)

    assert found_approvals.move_found_approvals(tmp_path) == 0
    assert saved_approvals.load_saved_approvals(tmp_path).stored == ()


def test_what_cannot_be_read_in_the_folder_stays_there(tmp_path: Path) -> None:
    file = write_found(tmp_path, '{"version": 1, "allow": ["send", "shell("]}')

    assert found_approvals.move_found_approvals(tmp_path) == 1
    assert file.exists()
    assert [item.text for item in saved_approvals.load_saved_approvals(tmp_path).stored] == ["send"]


def test_nothing_is_read_through_a_link_in_the_folder(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    write_found(elsewhere)
    (project / ".llm-do").symlink_to(elsewhere / ".llm-do")

    found = found_approvals.load_found_approvals(project)
    assert found.stored == ()
    assert found.faults
    assert found_approvals.move_found_approvals(project) == 0
    assert (elsewhere / found_approvals.FILE).exists()


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
    where = f"{saved_file(root)}:5"
    assert second.result.approvals[0].reason == f"send was allowed by an earlier answer ({where})"


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
    assert not saved_file(tmp_path).exists()


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

"""An approval is bound to the content whose change was shown, and nobody is asked about a call that must fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from llm_do import ApprovalDecision
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.filesystem.file_toolset import file_toolset
from llm_do.toolsets.filesystem.protection import Protection
from tests.runtime.approval.letters import RAN, send, sender
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def files(root: Path, *calls: Any, person: Any, **fields: Any) -> Any:
    spec = agent("main", script(list(calls), "fin"), toolsets=["filesystem_project"], **fields)
    return carry_out(runtime_of([spec], root=root, approvals=person))


class Meanwhile:
    """Answers `once`, and each time first does what happens meanwhile, as long as there is something."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self.happenings = list(happenings)
        self.diffs: list[str | None] = []

    async def __call__(self, request: Any) -> ApprovalDecision:
        self.diffs.append(request.diff)
        if self.happenings:
            self.happenings.pop(0)()
        return ApprovalDecision("once")


def test_a_write_is_asked_about_again_if_the_file_changed_after_its_diff_was_shown(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("one\n")
    person = Meanwhile(lambda: notes.write_text("one\ntheirs\n"))
    files(tmp_path, call("write_file", path="notes.txt", content="one\nmine\n"), person=person)

    assert len(person.diffs) == 2
    assert "-theirs" in str(person.diffs[1])
    assert notes.read_text() == "one\nmine\n"


def test_an_edit_is_asked_about_again_too(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("one\ntwo\n")
    person = Meanwhile(lambda: notes.write_text("zero\none\ntwo\n"))
    files(tmp_path, call("edit_file", path="notes.txt", old="two", new="2"), person=person)

    assert len(person.diffs) == 2
    assert notes.read_text() == "zero\none\n2\n"


def test_a_new_file_that_has_appeared_meanwhile_is_not_overwritten_unseen(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    person = Meanwhile(lambda: notes.write_text("theirs\n"))
    files(tmp_path, call("write_file", path="notes.txt", content="mine\n"), person=person)

    assert person.diffs[0] is None
    assert "-theirs" in str(person.diffs[1])
    assert notes.read_text() == "mine\n"


def test_a_file_that_changes_each_time_is_not_written(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("0\n")
    person = Meanwhile(*(lambda n=n: notes.write_text(f"theirs {n}\n") for n in range(9)))
    result = files(tmp_path, call("write_file", path="notes.txt", content="mine\n"), person=person)

    assert notes.read_text().startswith("theirs")
    assert results_of(result.messages)[0][1] == "denied"


def test_the_content_is_compared_inside_the_write(tmp_path: Path) -> None:
    """The file changes after the last look before the run."""
    notes = tmp_path / "notes.txt"
    notes.write_text("one\n")
    touched: list[int] = []
    person = Meanwhile()

    class Late(Root):
        def write(self, path: str, data: bytes, **options: Any) -> bool:
            if not touched:
                touched.append(1)
                notes.write_text("one\ntheirs\n")
            return super().write(path, data, **options)

    toolset = file_toolset(FileTools(Protection(Late(tmp_path))), name="late", read_only=False)
    spec = agent("main", script([call("write_file", path="notes.txt", content="mine\n")], "fin"), toolsets=[toolset])
    result = carry_out(runtime_of([spec], root=tmp_path, approvals=person))

    assert len(person.diffs) == 2
    assert "-theirs" in str(person.diffs[1])
    assert (notes.read_text(), len(result.approvals)) == ("mine\n", 2)


def test_a_write_that_a_rule_allows_needs_no_comparison(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\n")
    files(tmp_path, call("write_file", path="notes.txt", content="mine\n"), person="approve_all")

    assert (tmp_path / "notes.txt").read_text() == "mine\n"


class Shelf(FunctionToolset[Any]):
    """A toolset of somebody's own, whose calls change `shelf`."""

    def __init__(self) -> None:
        super().__init__([send])
        self.shelf = "one"

    def diff(self, name: str, args: dict[str, Any]) -> str:
        return f"-{self.shelf}\n+{args['to']}\n"


def test_a_toolsets_own_diff_is_compared_after_the_answer() -> None:
    shelf = Shelf()
    person = Meanwhile(lambda: setattr(shelf, "shelf", "two"))
    carry_out(runtime_of([agent("main", script([call("send", to="x")], "fin"), toolsets=[shelf])], approvals=person))

    assert person.diffs == ["-one\n+x\n", "-two\n+x\n"]
    assert RAN == ["x"]


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("edit_file", {"path": "a.txt", "old": "absent", "new": "x"}, "does not contain the text to replace"),
        ("edit_file", {"path": "a.txt", "old": "one", "new": "x"}, "more than once"),
        ("edit_file", {"path": "none.txt", "old": "a", "new": "x"}, "there is no such file"),
        ("write_file", {"path": "folder", "content": "x"}, "it is a folder"),
        ("move_file", {"source": "none.txt", "target": "b.txt"}, "there is no such file"),
        ("move_file", {"source": "a.txt", "target": "folder"}, "already exists"),
        ("delete_file", {"path": "none.txt"}, "there is no such file"),
        ("delete_file", {"path": "folder"}, "it is a folder"),
    ],
)
def test_a_call_that_must_fail_is_refused_before_anybody_is_asked(
    tmp_path: Path, name: str, args: dict[str, str], says: str
) -> None:
    (tmp_path / "a.txt").write_text("one one\n")
    (tmp_path / "folder").mkdir()
    person = Answers(["once"])
    result = files(tmp_path, call(name, **args), person=person)

    [(_, outcome, text)] = results_of(result.messages)
    assert (person.asked, outcome, result.status, result.denials) == ([], "failed", "completed", [])
    assert says in text


def test_a_denied_path_is_denied_whether_the_file_is_there_or_not(tmp_path: Path) -> None:
    result = files(tmp_path, call("delete_file", path=".git/none"), person="approve_all")

    [(_, outcome, _)] = results_of(result.messages)
    assert outcome == "denied"


def changing(value: Any) -> Any:
    def hook(agent: Any, tool_name: str, arguments: dict[str, Any]) -> None:
        arguments["to"] = value

    return hook


def test_the_record_says_what_ran_after_a_hook_changed_it() -> None:
    person = Answers(["once"])
    runtime = runtime_of([sender(hooks=[("pre_tool_call", changing("bob"))])], approvals=person)
    ear = heard(runtime)
    carry_out(runtime)

    assert RAN == ["bob"]
    assert [request.args for request in person.asked] == [{"to": "bob"}]
    assert [event.args for event in ear.of("tool_call")] == [{"to": "ann"}]
    assert [event.args for event in ear.of("tool_result")] == [{"to": "bob"}]


def test_a_hooks_invalid_arguments_are_refused_and_nobody_is_asked() -> None:
    person = Answers(["once"])
    result = carry_out(runtime_of([sender(hooks=[("pre_tool_call", changing(["bob"]))])], approvals=person))

    [(_, outcome, text)] = results_of(result.messages)
    assert (RAN, person.asked, outcome) == ([], [], "failed")
    assert text.startswith("a hook changed the arguments: ")


def test_arguments_that_a_hook_spoils_while_the_call_waits_are_refused() -> None:
    held: list[dict[str, Any]] = []
    asked: list[Any] = []

    async def person(request: Any) -> ApprovalDecision:
        asked.append(request.args)
        if len(asked) == 1:
            held[0]["to"] = 7
        return ApprovalDecision("once")

    spec = sender(hooks=[("pre_tool_call", lambda agent, tool_name, arguments: held.append(arguments))])
    result = carry_out(runtime_of([spec], approvals=person))

    assert (RAN, [dict(args) for args in asked]) == ([], [{"to": "ann"}, {"to": 7}])
    assert "a hook changed the arguments" in results_of(result.messages)[0][2]


def test_a_hook_that_changes_nothing_leaves_no_trace() -> None:
    runtime = runtime_of([sender(hooks=[("pre_tool_call", changing("ann"))])])
    ear = heard(runtime)
    carry_out(runtime)

    assert [event.args for event in ear.of("tool_result")] == [None]


@pytest.mark.parametrize(
    ("tool", "args", "in_diff"),
    [
        ("write_file", {"path": "notes.txt", "content": "one\nmine\n"}, ("content",)),
        ("write_file", {"path": "notes.txt", "content": "new\n" * 3000}, ()),
        ("write_file", {"path": "new.txt", "content": "one\n"}, ()),
        ("edit_file", {"path": "notes.txt", "old": "one", "new": "two"}, ("old", "new")),
    ],
)
def test_a_question_says_which_arguments_its_diff_shows(
    tmp_path: Path, tool: str, args: dict[str, str], in_diff: tuple[str, ...]
) -> None:
    (tmp_path / "notes.txt").write_text("one\n")
    person = Answers(["deny"])
    files(tmp_path, call(tool, **args), person=person)

    assert [each.in_diff for each in person.asked] == [in_diff]

"""A configured root that doesn't exist yet: writing needs approval as usual and creates it; reading finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do.errors import ToolError
from llm_do.policy.values import ToolCallInfo
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.tools.traits import traits_of
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.toolsets.filesystem.support import caller, configured


@pytest.fixture
def toolset(project: Path) -> Any:
    return configured(project, type="filesystem", root="notes/new")


def decision(toolset: Any, tool: str, **args: object) -> tuple[str, bool]:
    traits = traits_of(toolset.tools[tool].metadata)
    assert traits is not None
    assert traits.decide is not None
    verdict = traits.decide(ToolCallInfo(tool, args))
    assert verdict is not None
    return verdict.effect, verdict.person_only


def test_writing_below_a_missing_root_needs_the_same_approval_as_below_an_existing_one(
    toolset: Any, project: Path
) -> None:
    assert decision(toolset, "write_file", path="a/b.md", content="x") == ("ask", False)
    assert decision(toolset, "make_directory", path=".") == ("ask", False)
    assert decision(toolset, "write_file", path="x.agent", content="x") == ("ask", True)
    for path in ("../x", ".env", ".git/x", "a/../../x"):
        assert decision(toolset, "write_file", path=path, content="x")[0] == "deny"
    assert list(project.iterdir()) == []


def test_rules_match_paths_before_the_root_exists(toolset: Any) -> None:
    traits = traits_of(toolset.tools["write_file"].metadata)
    assert traits is not None
    assert traits.resolve is not None
    assert traits.resolve({"path": "a/./b.md"}) == {"path": "a/b.md"}


def test_reading_reports_that_the_root_does_not_exist_yet(toolset: Any, project: Path) -> None:
    call = caller(toolset)
    assert call("list_files") == call("search_files", pattern="x") == call("list_files", path="./")
    assert call("list_files") == "[there is nothing yet: the root folder doesn't exist]"
    for tool, args in (
        ("read_file", {"path": "a.md"}),
        ("list_files", {"path": "a"}),
        ("search_files", {"pattern": "x", "path": "a"}),
        ("edit_file", {"path": "a.md", "old": "x", "new": "y"}),
        ("delete_file", {"path": "a.md"}),
    ):
        with pytest.raises(
            ToolError, match=r"^a(\.md)?: there is no such file or folder: the root folder doesn't exist"
        ):
            call(tool, **args)
    with pytest.raises(ToolError, match="outside the root folder"):
        call("list_files", path="..")
    assert list(project.iterdir()) == []


def test_writing_creates_the_root_and_reading_finds_the_file(toolset: Any) -> None:
    call = caller(toolset)
    call("write_file", path="a/b.md", content="hello")
    assert call("read_file", path="a/b.md") == "hello"
    assert call("list_files") == "a/\na/b.md"


def test_the_root_itself_can_be_created(toolset: Any, project: Path) -> None:
    call = caller(toolset)
    assert call("make_directory", path=".") == "Made ."
    assert call("list_files") == "[nothing in . matches **/*]"
    assert (project / "notes" / "new").is_dir()


@pytest.mark.parametrize("root", ["../gone", "absolute", "out/gone"])
def test_nothing_is_created_outside_the_project(project: Path, root: str) -> None:
    (project.parent / "elsewhere").mkdir()
    (project / "out").symlink_to("../elsewhere")
    given = str(project.parent / "gone") if root == "absolute" else root
    toolset = configured(project, type="filesystem", root=given)
    assert decision(toolset, "write_file", path="a.md", content="x")[0] == "deny"
    with pytest.raises(ToolError, match="the root folder"):
        caller(toolset)("write_file", path="a.md", content="x")
    assert sorted(path.name for path in project.parent.iterdir()) == ["elsewhere", "project"]
    assert list((project.parent / "elsewhere").iterdir()) == []


def test_an_approved_call_in_a_run_creates_the_root(project: Path) -> None:
    turns = [call("list_files")], [call("write_file", path="a.md", content="hello")], [call("list_files")]
    kit = BuiltinToolset("notes", {"type": "filesystem", "root": "notes"})
    spec = agent("main", script(*turns, "fin"), toolsets=["notes"])
    result = carry_out(runtime_of([spec], root=project, toolsets={"notes": kit}, approvals="approve_all"))
    assert [text for _, _, text in results_of(result.messages)] == [
        "[there is nothing yet: the root folder doesn't exist]",
        "Made a.md, 5 bytes",
        "a.md",
    ]

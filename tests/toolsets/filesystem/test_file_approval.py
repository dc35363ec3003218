from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.runtime.tools.traits import TRAITS_KEY, BuiltinContext, ToolTraits
from llm_do.toolsets.filesystem import FileSystemToolset, filesystem_project
from tests.support.tables import each_row
from tests.toolsets.filesystem.support import configured, context


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "tools.py").write_text("x = 1\n")
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "alias.txt").symlink_to("main.agent")
    (root / "main.agent").write_text("---\nname: main\n---\nhi\n")
    (root / "out.txt").symlink_to("/etc/passwd")
    (root / "project.json").symlink_to("sub/real.json")
    return root


def traits(toolset: FunctionToolset[object], tool: str) -> ToolTraits:
    metadata = toolset.tools[tool].metadata
    assert metadata is not None
    found = metadata[TRAITS_KEY]
    assert isinstance(found, ToolTraits)
    return found


def toolset(project: Path, **options: object) -> FunctionToolset[object]:
    return configured(project, **options) if options else filesystem_project(context(project))


def decision(toolset: FunctionToolset[object], tool: str, args: Mapping[str, Any]) -> Decision:
    decide = traits(toolset, tool).decide
    assert decide is not None
    found = decide(ToolCallInfo(tool, args))
    assert found is not None
    return found


def summary(found: Decision) -> str:
    return "person" if found.person_only else found.effect


WRITES = ["write_file", "edit_file", "make_directory", "delete_file"]


@each_row("tool", ["read_file", "list_files", "search_files"])
@each_row(
    "path, expected",
    [
        ("a.txt", "allow"),
        ("missing", "allow"),
        ("main.agent", "allow"),
        (".git/config", "deny"),
        (".git/HEAD", "allow"),
        (".llm-do/state.db", "deny"),
        (".llm-do", "deny"),
        (".LLM-DO/approvals.json", "deny"),
        (".llm-do/artifacts", "deny"),
        ("sub/../.llm-do/state.db", "deny"),
        (".llm-do/artifacts/result-1.txt", "allow"),
        ("../outside", "allow"),
        (".env", "deny"),
        (".env.local", "deny"),
        (".ENV", "deny"),
        ("sub/server.pem", "deny"),
        ("sub/../id.KEY", "deny"),
    ],
)
def test_reads_are_allowed_unless_they_may_expose_secrets(project: Path, tool: str, path: str, expected: str) -> None:
    assert summary(decision(toolset(project), tool, {"path": path})) == expected


@each_row("tool", WRITES)
@each_row(
    "path, expected",
    [
        ("a.txt", "ask"),
        ("new/file.py", "person"),
        ("{root}/a.txt", "ask"),
        (".github/x", "ask"),
        (".gitignore", "ask"),
        (".git/config", "deny"),
        (".Git/config", "deny"),
        (".git", "deny"),
        ("sub/.git/hooks/pre-commit", "deny"),
        ("git~1/config", "deny"),
        (".llm-do/approvals.json", "deny"),
        (".env", "deny"),
        ("x.pem", "deny"),
        ("../outside", "deny"),
        ("/etc/passwd", "deny"),
        ("a\0b", "deny"),
        ("project.json", "person"),
        ("Project.JSON", "person"),
        ("sub/project.json", "person"),
        ("main.agent", "person"),
        ("sub/NEW.Agent", "person"),
        ("tools.py", "person"),
        ("sub/../TOOLS.py", "person"),
        ("{root}/tools.py", "person"),
        ("other.py", "person"),
    ],
)
def test_writes_need_approval_or_a_person_or_are_blocked(project: Path, tool: str, path: str, expected: str) -> None:
    found = decision(toolset(project), tool, {"path": path.format(root=project)})
    assert summary(found) == expected
    assert found.reason


def test_a_link_is_judged_by_its_target(project: Path) -> None:
    files = toolset(project)
    assert summary(decision(files, "write_file", {"path": "alias.txt"})) == "person"
    assert summary(decision(files, "write_file", {"path": "out.txt"})) == "deny"
    assert summary(decision(files, "delete_file", {"path": "alias.txt"})) == "ask"
    (project / "docs").symlink_to(".git")
    (project / ".git").mkdir()
    assert summary(decision(files, "write_file", {"path": "docs/x"})) == "deny"
    assert summary(decision(files, "delete_file", {"path": "docs/x"})) == "deny"


def test_a_link_is_judged_by_its_own_name_too(project: Path) -> None:
    files = toolset(project)
    assert summary(decision(files, "write_file", {"path": "project.json"})) == "person"
    assert summary(decision(files, "delete_file", {"path": "project.json"})) == "person"
    assert summary(decision(files, "write_file", {"path": "sub/real.json"})) == "ask"


def test_a_listed_python_file_is_recognized_through_a_link_and_by_its_own_name(project: Path) -> None:
    (project / "linked.py").symlink_to("sub/real.py")
    (project / "sub/real.py").write_text("")
    files = filesystem_project(BuiltinContext("files", project, project, [project / "linked.py"]))
    assert summary(decision(files, "write_file", {"path": "linked.py"})) == "person"
    assert summary(decision(files, "write_file", {"path": "sub/real.py"})) == "person"
    assert summary(decision(files, "write_file", {"path": "sub/real.txt"})) == "ask"


@each_row(
    "source, target, expected",
    [
        ("a.txt", "b.txt", "ask"),
        ("a.txt", "x.agent", "person"),
        ("main.agent", "b.txt", "person"),
        ("tools.py", "b.py", "person"),
        (".env", "b.txt", "deny"),
        ("a.txt", ".git/x", "deny"),
        ("main.agent", ".git/x", "deny"),
        ("a.txt", "../x", "deny"),
    ],
)
def test_a_move_is_judged_by_both_its_ends(project: Path, source: str, target: str, expected: str) -> None:
    assert summary(decision(toolset(project), "move_file", {"source": source, "target": target})) == expected


def test_a_configured_path_is_not_blocked(project: Path) -> None:
    files = toolset(project, allow_protected=[".env.example", "certificates/**", ".git/info/*"])
    assert summary(decision(files, "read_file", {"path": "sub/.env.example"})) == "allow"
    assert summary(decision(files, "write_file", {"path": ".env.example"})) == "ask"
    assert summary(decision(files, "read_file", {"path": "certificates/a/b.pem"})) == "allow"
    assert summary(decision(files, "write_file", {"path": ".git/info/exclude"})) == "ask"
    assert summary(decision(files, "write_file", {"path": ".git/config"})) == "deny"
    assert summary(decision(files, "read_file", {"path": ".env"})) == "deny"
    assert summary(decision(files, "read_file", {"path": "b.pem"})) == "deny"


def test_rules_see_a_paths_real_location_and_every_name_for_it(project: Path) -> None:
    (project / "short").symlink_to("sub")
    files = toolset(project)

    def resolved(tool: str, **args: str) -> Mapping[str, Any]:
        resolve = traits(files, tool).resolve
        assert resolve is not None
        return resolve(args)

    assert resolved("write_file", path="./sub/../a.txt") == {"path": "a.txt"}
    assert resolved("write_file", path="short/new/x") == {"path": ("short/new/x", "sub/new/x")}
    assert resolved("write_file", path="alias.txt") == {"path": ("alias.txt", "main.agent")}
    assert resolved("delete_file", path="short/../alias.txt") == {"path": "alias.txt"}
    assert resolved("read_file", path=str(project / "a.txt")) == {"path": "a.txt"}
    assert resolved("read_file", path="../x") == {"path": None}
    assert resolved("list_files") == {"path": "."}
    assert resolved("move_file", source="a.txt", target="short/b") == {
        "source": "a.txt",
        "target": ("short/b", "sub/b"),
    }
    assert traits(files, "move_file").facts.primary == ("source", "target")
    assert traits(files, "write_file").facts.primary == "path"


def test_a_question_has_a_description(project: Path) -> None:
    files = toolset(project)

    def described(tool: str, **args: str) -> str:
        describe = traits(files, tool).describe
        assert describe is not None
        return describe(args)

    assert described("write_file", path="a\nb", content="abc") == "Write 3 characters to the file a\\nb"
    assert described("edit_file", path="a", old="x", new="y") == "Edit the file a"
    assert described("make_directory", path="d") == "Make the folder d"
    assert described("move_file", source="a", target="b") == "Move the file a to b"
    assert described("delete_file", path="a") == "Delete the file a"
    assert described("read_file", path="a") == "Read the file a"
    assert described("list_files") == "List the files in ."
    assert described("search_files", pattern="x.*") == "Search the files in . for x.*"


class TestDiff:
    def diff(self, project: Path, tool: str, **args: str) -> str | None:
        show = traits(toolset(project), tool).preview
        assert show is not None
        return show(args).diff

    def test_a_write_to_an_existing_file_shows_what_changes(self, project: Path) -> None:
        assert self.diff(project, "write_file", path="a.txt", content="one\n2\n") == (
            "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        )
        assert self.diff(project, "edit_file", path="a.txt", old="two\n", new="") == (
            "--- a.txt\n+++ a.txt\n@@ -1,2 +1 @@\n one\n-two\n"
        )

    def test_there_is_no_diff_without_two_texts_to_compare(self, project: Path) -> None:
        (project / "b.bin").write_bytes(b"\0")
        for args in (
            {"path": "new.txt", "content": "x"},
            {"path": "out.txt", "content": "x"},
            {"path": "b.bin", "content": "x"},
            {"path": ".env", "content": "x"},
            {"path": "a.txt", "content": "one\ntwo\n"},
        ):
            assert self.diff(project, "write_file", **args) is None
        assert self.diff(project, "edit_file", path="a.txt", old="three", new="") is None
        assert traits(toolset(project), "delete_file").preview is None

    def test_a_missing_final_newline_is_shown(self, project: Path) -> None:
        shown = self.diff(project, "write_file", path="a.txt", content="one\ntwo")
        assert shown is not None
        assert shown.endswith("-two\n+two\n\\ No newline at end of file\n")

    def test_a_long_diff_says_how_much_it_omits(self, project: Path) -> None:
        (project / "a.txt").write_text("".join(f"{n}\n" for n in range(5000)))
        shown = self.diff(project, "write_file", path="a.txt", content="".join(f"x{n}\n" for n in range(5000)))
        assert shown is not None
        assert shown.count("\n") == 2001
        assert shown.endswith("[8,003 more lines of this diff are not shown]\n")


@pytest.mark.parametrize(
    ("config", "read", "write"),
    [
        ({}, "allow", "ask"),
        ({"read_approval": True}, "ask", "ask"),
        ({"write_approval": False}, "allow", "allow"),
        ({"read_approval": True, "write_approval": False}, "ask", "allow"),
    ],
)
def test_the_legacy_toolset_asks_as_configured(project: Path, config: dict[str, bool], read: str, write: str) -> None:
    files = FileSystemToolset({"base_path": project, **config}, python_files=[project / "tools.py"])  # pyright: ignore[reportArgumentType]
    assert summary(decision(files, "read_file", {"path": "a.txt"})) == read
    assert summary(decision(files, "write_file", {"path": "a.txt"})) == write
    assert summary(decision(files, "read_file", {"path": ".env"})) == "deny"
    assert summary(decision(files, "write_file", {"path": "tools.py"})) == "person"
    assert summary(decision(files, "write_file", {"path": "main.agent"})) == "person"

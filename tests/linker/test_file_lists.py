from __future__ import annotations

import os
import string
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from llm_do.diagnostics.diagnostic import Location
from llm_do.linker.sources.file_lists import list_files, stay_inside
from tests.linker.conftest import Make

PLACE = Location("project.json", 3, 5)
TREE = {
    "a.agent": "",
    "b.agent": "",
    ".hidden.agent": "",
    "x[1].agent": "",
    "agents/c.agent": "",
    "agents/deep/d.agent": "",
    "agents/.git/e.agent": "",
    "notes.md": "",
}


def matches(root: Path, *patterns: str) -> list[str]:
    files, faults = list_files(root, [(pattern, PLACE) for pattern in patterns])
    assert faults == []
    return [path.relative_to(root).as_posix() for path in files]


def faults(root: Path, *patterns: str) -> list[tuple[str, str]]:
    return [(item.code, item.message) for item in list_files(root, [(pattern, PLACE) for pattern in patterns])[1]]


def test_globs_match_as_in_a_shell(make: Make) -> None:
    root = make(TREE)
    assert matches(root, "*.agent") == ["a.agent", "b.agent", "x[1].agent"]
    assert matches(root, "**/*.agent") == ["a.agent", "agents/c.agent", "agents/deep/d.agent", "b.agent", "x[1].agent"]
    assert matches(root, "agents/**") == ["agents/c.agent", "agents/deep/d.agent"]
    assert matches(root, "**/deep/*") == ["agents/deep/d.agent"]
    assert matches(root, "[ab].agent") == ["a.agent", "b.agent"]
    assert matches(root, "?.agent") == ["a.agent", "b.agent"]
    assert matches(root, ".*.agent") == [".hidden.agent"]


def test_a_file_with_a_bracket_in_its_name_can_be_listed(make: Make) -> None:
    assert matches(make(TREE), "x[1].agent") == ["x[1].agent"]


def test_files_are_sorted_and_listed_once_however_they_are_spelled(make: Make) -> None:
    root = make(TREE)
    spellings = ["b.agent", "./b.agent", "agents/../b.agent", "agents//c.agent", "*.agent", "a.agent"]
    assert matches(root, *spellings) == ["a.agent", "agents/c.agent", "b.agent", "x[1].agent"]


def test_a_link_to_a_listed_file_is_the_same_file(make: Make) -> None:
    root = make(TREE)
    (root / "z.agent").symlink_to("a.agent")
    assert matches(root, "?.agent") == ["a.agent", "b.agent"]


def test_a_pattern_without_a_match_is_an_error_with_location_and_suggestion(make: Make) -> None:
    _, found = list_files(make(TREE), [("agent/*.agent", PLACE), ("noets.md", PLACE), ("notes.md/x", PLACE)])
    assert [(item.code, item.place, item.hint) for item in found] == [
        ("LD206", PLACE, "correct the path, or remove it"),
        ("LD206", PLACE, "did you mean `notes.md`?"),
        ("LD206", PLACE, "correct the path, or remove it"),
    ]


@pytest.mark.parametrize("path", ["../x.agent", "agents/../../x", "/etc/passwd", "..", "/", "a/../../*.agent"])
def test_a_path_that_leaves_the_project_is_an_error(make: Make, path: str) -> None:
    assert faults(make(TREE), path) == [("LD207", f"`{path}` leaves the project")]


def test_a_link_that_leaves_the_project_is_an_error(make: Make) -> None:
    root = make({"project/a.agent": "", "outside.agent": "", "shared/s.agent": ""}) / "project"
    (root / "out.agent").symlink_to("../outside.agent")
    (root / "shared").symlink_to("../shared")
    assert faults(root, "out.agent") == [("LD207", "`out.agent` leaves the project")]
    assert faults(root, "*.agent") == [("LD207", "`*.agent` leaves the project through the link out.agent")]
    assert [code for code, _ in faults(root, "shared/s.agent", "shared/*.agent")] == ["LD207", "LD207"]


def test_folders_pipes_and_dangling_links_are_errors(make: Make) -> None:
    root = make(TREE)
    os.mkfifo(root / "pipe.agent")
    (root / "dangling.agent").symlink_to("nowhere")
    (root / "circle.agent").symlink_to("circle.agent")
    assert [code for code, _ in faults(root, "agents", "pipe.agent", "dangling.agent", "circle.agent", ".")] == [
        "LD208",
        "LD208",
        "LD101",
        "LD101",
        "LD208",
    ]


def test_link_cycles_do_not_make_a_glob_endless(make: Make) -> None:
    root = make(TREE)
    (root / "agents" / "loop").symlink_to("..")
    assert matches(root, "agents/**/*.agent") == ["agents/c.agent", "agents/deep/d.agent"]


@given(st.lists(st.sampled_from(["**", "*", "..", ".", "", "a", "a*", "[a", "?", "~", "agents", "\\"]), max_size=6))
def test_no_pattern_raises_or_finds_a_file_outside(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp() / "tree"
    (root / "agents").mkdir(parents=True, exist_ok=True)
    (root / "agents" / "a.agent").touch()
    files, found = list_files(root, [("/".join(parts), PLACE)])
    assert all(path.is_relative_to(root) and path.is_file() for path in files)
    assert files or found


@given(st.text(string.printable, max_size=20))
def test_a_path_kept_inside_never_leads_out(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.getbasetemp().resolve()
    path, fault = stay_inside(root, text, PLACE)
    assert (path is None) == (fault is not None)
    assert path is None or path.resolve().is_relative_to(root)

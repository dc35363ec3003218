from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do.errors import UsageError
from llm_do.linker.sources.project_root import ProjectLocation, find_project, locate_project
from tests.linker.conftest import Make


def test_a_folder_with_a_manifest_is_its_project(make: Make) -> None:
    root = make({"project.json": "{}", "main.agent": ""})
    assert locate_project(root) == ProjectLocation(root, root / "project.json")


def test_a_manifest_of_any_name_is_a_project(make: Make) -> None:
    root = make({"other.json": "{}"})
    assert locate_project(root / "other.json") == ProjectLocation(root, root / "other.json")


def test_a_folder_with_an_agent_is_a_project_without_a_manifest(make: Make) -> None:
    root = make({"a.agent": ""})
    assert locate_project(root) == ProjectLocation(root)


def test_a_single_agent_file_is_a_project_even_beside_a_manifest(make: Make) -> None:
    root = make({"a.agent": "", "project.json": "{}"})
    assert locate_project(root / "a.agent") == ProjectLocation(root, None, root / "a.agent")


def test_a_path_through_a_link_and_dots_gives_the_real_root(make: Make, tmp_path: Path) -> None:
    make({"real/project.json": "{}"})
    (tmp_path / "link").symlink_to("real")
    assert locate_project(tmp_path / "link" / ".." / "link").root == tmp_path / "real"


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("gone", "there is no such file or folder"),
        ("gone.agent", "there is no such file or folder"),
        ("empty", "neither project.json nor an .agent file"),
        ("notes.txt", "neither a manifest (.json) nor an .agent file"),
        ("dangling", "neither a folder nor an ordinary file"),
        ("odd", "project.json is not a file"),
        ("nul\0", "no project at"),
        ("x" * 5000, "no project at"),
    ],
)
def test_a_missing_project_is_an_error_that_names_what_was_searched_for(make: Make, named: str, message: str) -> None:
    root = make({"notes.txt": "", "empty/readme.md": "", "odd/project.json/x": ""})
    (root / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError) as caught:
        locate_project(root / named)
    assert message in caught.value.message
    assert caught.value.hint


def test_the_nearest_manifest_above_is_found(make: Make) -> None:
    root = make({"project.json": "{}", "inner/project.json": "{}", "inner/deep/er/x.txt": "", "other/x.agent": ""})
    assert find_project(root / "inner" / "deep" / "er").root == root / "inner"
    assert find_project(root / "other").root == root


def test_a_bare_folder_is_found_when_no_manifest_is_above(make: Make) -> None:
    root = make({"a.agent": ""})
    assert find_project(root) == ProjectLocation(root)


def test_a_folder_outside_any_project_is_an_error(make: Make) -> None:
    root = make({"x/y.txt": ""})
    with pytest.raises(UsageError, match=r"no folder above it has a project\.json"):
        find_project(root / "x")


def test_the_error_says_what_makes_a_project_of_what_is_there(make: Make) -> None:
    ways = {
        "nothing/x.txt": "`llm-do init` creates a project",
        "claude/.claude/agents/a.md": "`llm-do import .claude/agents` makes a project of the subagents here",
        "dates/SKILL.md": "`skills: [.]` in an agent file",
        "library/dates/SKILL.md": "`skills: [*]` in an agent file",
        "hidden/.claude/skills/dates/SKILL.md": "`skills: [.claude/skills/*]` in an agent file",
    }
    root = make(dict.fromkeys(ways, ""))
    for file, way in ways.items():
        with pytest.raises(UsageError) as raised:
            find_project(root / file.partition("/")[0])
        assert raised.value.hint is not None
        assert raised.value.hint.startswith(way), file


def test_the_search_ends_at_the_root_of_a_repository(make: Make) -> None:
    root = make({"project.json": "{}", "clone/.git/HEAD": "", "clone/src/x.txt": "", "clone/project.json": "{}"})
    assert find_project(root / "clone" / "src").root == root / "clone"
    (root / "clone" / "project.json").unlink()
    with pytest.raises(UsageError, match="no project here"):
        find_project(root / "clone" / "src")


def test_a_work_tree_whose_git_is_a_file_ends_the_search_too(make: Make) -> None:
    root = make({"project.json": "{}", "tree/.git": "gitdir: elsewhere", "tree/src/x.txt": ""})
    with pytest.raises(UsageError, match="no project here"):
        find_project(root / "tree" / "src")


def test_the_home_folder_is_nobodys_project_unless_one_works_in_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make({"home/project.json": "{}", "home/work/x.txt": "", "project.json": "{}"})
    monkeypatch.setenv("HOME", str(root / "home"))
    assert find_project(root / "home").root == root / "home"
    (root / "home" / "project.json").rename(root / "home" / "other.json")
    for folder in ("home", "home/work"):
        with pytest.raises(UsageError, match="no project here"):
            find_project(root / folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_the_search_ends_where_a_folder_belongs_to_somebody_else(make: Make) -> None:
    root = make({"shared/project.json": "{}", "shared/mine/project.txt": "", "shared/mine/deep/x.txt": ""})
    os.chown(root / "shared", 4711, 4711)
    with pytest.raises(UsageError, match="no project here"):
        find_project(root / "shared" / "mine" / "deep")


def test_the_search_ends_where_others_may_write(make: Make) -> None:
    root = make({"shared/project.json": "{}", "shared/mine/deep/readme.md": ""})
    assert find_project(root / "shared" / "mine" / "deep").root == root / "shared"
    (root / "shared").chmod(0o1777)
    with pytest.raises(UsageError):
        find_project(root / "shared" / "mine" / "deep")
    assert find_project(root / "shared").root == root / "shared"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_manifest_of_another_user_is_not_found_upwards(make: Make) -> None:
    root = make({"project.json": "{}", "deep/readme.md": ""})
    os.chown(root / "project.json", 65534, -1)
    with pytest.raises(UsageError):
        find_project(root / "deep")
    assert find_project(root).root == root

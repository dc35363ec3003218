from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.tree import Tree


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(tmp_path / "root")
    root.path.mkdir()
    return root


def paths(tree: Tree) -> list[str]:
    return [found.path for found in tree]


def fill(root: Root, *files: str) -> None:
    for path in files:
        root.write(path, b"")


def test_a_tree_is_sorted_with_each_folder_before_its_contents(root: Root) -> None:
    fill(root, "b", "a/z", "a/b/c", "c.d")
    assert paths(Tree(root)) == ["a", "a/b", "a/b/c", "a/z", "b", "c.d"]
    assert paths(Tree(root, "a")) == ["a/b", "a/b/c", "a/z"]
    assert paths(Tree(root, depth=1)) == ["a", "b", "c.d"]


def test_git_state_and_environment_folders_are_left_out(root: Root) -> None:
    fill(root, ".git/config", ".GIT2", ".llm-do/state.db", ".venv/x", "env/pyvenv.cfg", "env/lib/x", "x/.git/y", "x/z")
    fill(root, "envs/conda/conda-meta/history", "envs/conda/bin/python", "y/conda-meta")
    assert paths(Tree(root)) == [".GIT2", "envs", "x", "x/z", "y", "y/conda-meta"]


def test_gitignored_files_are_left_out(root: Root) -> None:
    fill(root, "a/x.log", "a/y", "a/b/x.log", "a/b/q", "build/x")
    root.write(".gitignore", b"*.log\nbuild/\n")
    root.write("a/.gitignore", b"/y\n!x.log\n")
    root.write("a/b/.gitignore", b"x.log\n")
    assert paths(Tree(root)) == [".gitignore", "a", "a/.gitignore", "a/b", "a/b/.gitignore", "a/b/q", "a/x.log"]
    assert paths(Tree(root, "a/b")) == ["a/b/.gitignore", "a/b/q"]


def test_a_requested_folder_is_listed_even_if_ignored(root: Root) -> None:
    fill(root, "build/x", ".git/config", "env/pyvenv.cfg")
    root.write(".gitignore", b"build/\nx\n")
    assert paths(Tree(root, "build")) == ["build/x"]
    assert paths(Tree(root, ".git")) == [".git/config"]
    assert paths(Tree(root, "env")) == ["env/pyvenv.cfg"]


def test_additional_rules_apply_from_the_root(root: Root) -> None:
    fill(root, "a/x.bin", "a/y")
    assert paths(Tree(root, "a", ignore=["**/*.bin"])) == ["a/y"]


def test_links_are_shown_and_not_followed(root: Root, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").touch()
    fill(root, "a/x")
    (root.path / "out").symlink_to(tmp_path / "outside")
    (root.path / "round").symlink_to(".")
    found = {each.path: each.kind for each in Tree(root)}
    assert found == {"a": "folder", "a/x": "file", "out": "link", "round": "link"}
    for each in Tree(root):
        if each.kind == "link":
            with pytest.raises((OSError, FileRefusedError)), each.open():
                pass


def test_a_linked_gitignore_is_not_read(root: Root, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("x")
    fill(root, "x")
    (root.path / ".gitignore").symlink_to(tmp_path / "rules")
    assert paths(Tree(root)) == [".gitignore", "x"]


def test_a_pipe_in_a_tree_does_not_block(root: Root) -> None:
    os.mkfifo(root.path / ".gitignore")
    assert [(each.path, each.kind) for each in Tree(root)] == [(".gitignore", "other")]


def test_a_truncated_tree_says_so(root: Root) -> None:
    fill(root, *(f"{n // 10}/{n}" for n in range(30)))
    tree = Tree(root, max_entries=5)
    assert len(paths(tree)) == 5
    assert tree.stopped == "there are more than 5 files and folders"
    tree = Tree(root, max_seconds=0)
    assert paths(tree) == []
    assert tree.stopped == "it took longer than 0 seconds"
    tree = Tree(root)
    assert len(paths(tree)) == 33
    assert tree.stopped is None


def test_ignored_entries_count_towards_the_limits(root: Root) -> None:
    fill(root, *(f"{n}.log" for n in range(30)))
    root.write(".gitignore", b"*.log\n")
    tree = Tree(root, max_entries=5)
    assert paths(tree) == [".gitignore"]
    assert tree.stopped == "there are more than 5 files and folders"
    tree = Tree(root, ignore=["*"], max_seconds=0)
    assert paths(tree) == []
    assert tree.stopped == "it took longer than 0 seconds"


def test_a_folder_is_truncated_only_over_the_limit(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.files.tree._MAX_IN_FOLDER", 3)
    fill(root, "a", "b", "c")
    tree = Tree(root)
    assert (paths(tree), tree.stopped) == (["a", "b", "c"], None)
    fill(root, "d")
    assert (len(paths(tree)), tree.stopped) == (3, ". contains more than 3 names")


def test_a_gitignore_may_begin_with_a_byte_order_mark(root: Root) -> None:
    fill(root, "a.log", "b")
    root.write(".gitignore", b"\xef\xbb\xbf*.log\n")
    assert paths(Tree(root)) == [".gitignore", "b"]


def test_a_truncated_gitignore_has_no_partial_rule(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.files.tree._MAX_IGNORE_BYTES", 7)
    fill(root, "a.log", "b", "x")
    root.write(".gitignore", b"x\ny\nz\n*.log\n")
    assert paths(Tree(root)) == [".gitignore", "a.log", "b"]


def test_a_very_deep_tree_is_cut_off(root: Root) -> None:
    root.make_directory("/".join(["d"] * 150))
    tree = Tree(root)
    assert len(paths(tree)) == 100
    assert tree.stopped is not None
    assert tree.stopped.endswith("is too deep")


def test_listing_anything_but_a_folder_is_refused(root: Root) -> None:
    fill(root, "x")
    with pytest.raises(FileRefusedError, match="not a folder"):
        paths(Tree(root, "x"))
    with pytest.raises(FileRefusedError, match="outside"):
        paths(Tree(root, ".."))

"""What file tools replace is kept before they do: each content once, for its owner only, and only so much."""

from __future__ import annotations

import errno
import inspect
import os
import stat
import time
from pathlib import Path

import pytest

from llm_do.files import folders, root as root_module
from llm_do.files.changes import folder_changes, kept_folder, run_keeper
from llm_do.files.changes.file_states import LARGEST
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.undoing import undo
from llm_do.files.refusals import FileRefusedError
from llm_do.toolsets.filesystem.file_tools import FileTools
from tests.files.undo_support import changed_by, outcomes, plan_of, tree, undone


def test_a_file_that_is_too_large_is_changed_and_that_it_is_not_kept_is_said(tmp_path: Path) -> None:
    for name in ("large", "moved"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(LARGEST + 1)
    said: list[str] = []

    def act(tools: FileTools) -> None:
        tools.delete_file("large")
        tools.move_file("moved", "there")
        tools.write_file("small", "x")

    changed_by(tmp_path, act, say=said.append)
    too_large = "can't be restored by `llm-do undo`: it is too large to be kept, with 32.0 MB"
    assert said == [f"large {too_large}", f"moved {too_large}"]
    plan = plan_of(tmp_path, "run")
    assert outcomes(plan) == {"large": "unkept", "moved": "unkept", "small": "undo", "there": "unkept"}
    undo(tmp_path, plan, "undo")
    assert sorted(tree(tmp_path)) == ["there"]  # the only copy that is left of it


def test_contents_are_kept_once_and_only_for_their_owner(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("API_KEY=1")
    previous = os.umask(0)
    try:
        changed_by(tmp_path, lambda tools: [tools.write_file(name, "x") for name in ("a", "b", "c")])
    finally:
        os.umask(previous)

    found = list((tmp_path / ".llm-do" / "undo").rglob("*"))
    assert [path.read_text() for path in found if path.parent.parent.name == "files"] == ["API_KEY=1"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600, 0o700}


@pytest.mark.parametrize("why", ["ENOSPC", "EDQUOT", "EIO"])
def test_a_change_is_not_made_if_the_disk_is_too_full_to_keep_what_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    (tmp_path / "a").write_text("before")
    changed_by(tmp_path, lambda tools: tools.write_file("b", "x"))
    fsync = os.fsync

    def full(number: int) -> None:
        raise OSError(getattr(errno, why), "full")

    monkeypatch.setattr(os, "fsync", full)
    for act in (
        lambda tools: tools.write_file("a", "after"),
        lambda tools: tools.delete_file("a"),
        lambda tools: tools.move_file("a", "c"),
        lambda tools: tools.make_directory("d"),
    ):
        with pytest.raises(FileRefusedError, match="what it replaces can't be kept for `llm-do undo`"):
            changed_by(tmp_path, act)
    monkeypatch.setattr(os, "fsync", fsync)
    assert sorted(tree(tmp_path)) == ["a", "b"]
    assert outcomes(plan_of(tmp_path, "run")) == {"b": "undo"}


def test_a_folder_that_nothing_can_be_kept_in_does_not_keep_files_from_being_changed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".llm-do").symlink_to("elsewhere")
    said: list[str] = []
    changed_by(tmp_path, lambda tools: [tools.write_file(name, "x") for name in ("a", "b")], say=said.append)

    assert len(said) == 1
    assert said[0].startswith("nothing that this run replaces is kept for `llm-do undo`: .llm-do can't be written to (")
    assert sorted(tree(tmp_path)) == ["a", "b", "elsewhere"]


def test_what_is_kept_is_bounded_in_age_number_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptFolder(tmp_path)
    for number in range(6):
        (tmp_path / "a").write_text(f"before {number}" * 100)
        changed_by(tmp_path, lambda tools: tools.write_file("a", "after"), f"run {number}")
    monkeypatch.setattr(kept_folder, "MOST_RECORDS", 5)
    kept.prune("run 5")
    assert [record.id for record in kept.records()] == [f"run {number}" for number in range(1, 6)]
    monkeypatch.setattr(kept_folder, "MOST_BYTES", 2000)
    kept.prune("run 5")
    assert [record.id for record in kept.records()] == ["run 3", "run 4", "run 5"]
    assert len(list((tmp_path / ".llm-do" / "undo" / "files").glob("*/*"))) == 3

    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 31 * 86400)
    monkeypatch.setattr(run_keeper, "_pruned", {})
    changed_by(tmp_path, lambda tools: tools.write_file("b", "x"), "later")
    assert [record.id for record in kept.records()] == ["later"]
    assert list((tmp_path / ".llm-do" / "undo" / "files").glob("*/*")) == []


def test_one_run_keeps_only_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name * 100)
    monkeypatch.setattr(run_keeper, "MOST_BYTES", 250)
    changed_by(tmp_path, lambda tools: [tools.write_file(name, "x") for name in ("a", "b")])
    changed_by(tmp_path, lambda tools: tools.write_file("c", "x"))  # as a run that is resumed

    assert outcomes(plan_of(tmp_path, "run")) == {"a": "undo", "b": "undo", "c": "unkept"}


def test_what_runs_have_replaced_is_dropped_with_their_undos(tmp_path: Path) -> None:
    for id in ("a", "b", "c"):
        (tmp_path / id).write_text(id)
        changed_by(tmp_path, lambda tools, id=id: tools.delete_file(id), id)
    undone(tmp_path, "a", "undo-a")
    kept = KeptFolder(tmp_path)
    kept.drop_runs(["a", "none"])
    assert [record.id for record in kept.records()] == ["b", "c"]
    assert len(list((tmp_path / ".llm-do" / "undo" / "files").glob("*/*"))) == 2


def test_folders_are_changed_in_the_one_place_that_keeps_what_is_replaced() -> None:
    changing = ("mkdir", "rmdir", "unlink", "rename", "symlink")
    offered = {name for name, _ in inspect.getmembers(folders.Folder, inspect.isfunction) if name in changing}
    assert offered == set(changing)
    text = inspect.getsource(root_module)
    assert [name for name in changing if f".{name}(" in text] == []
    assert "CREATE" not in text
    for name, function in inspect.getmembers(folder_changes, inspect.isfunction):
        if name in folder_changes.__all__ and name != "mode_to_keep":
            assert "with kept(" in inspect.getsource(function), name

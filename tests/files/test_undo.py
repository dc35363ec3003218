"""What file tools change is kept before they do, and undone exactly; what has changed since is left alone."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import inspect
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.files import folders, root as root_module
from llm_do.files.changes import folder_changes, kept_folder, run_keeper
from llm_do.files.changes.change_record import FileKey
from llm_do.files.changes.file_states import LARGEST
from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.changes.undo_plan import UndoPlan, left_to_undo, plan_last, plan_undo
from llm_do.files.changes.undoing import Undone, undo
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.filesystem.protection import Protection


def tools_of(root: Path) -> FileTools:
    return FileTools(Protection(Root(root)))


def tree(root: Path) -> dict[str, tuple[str, int]]:
    """Everything below a folder but llm-do's own: contents, links, modes."""
    found: dict[str, tuple[str, int]] = {}
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name != ".llm-do"]
        for name in [*below, *files]:
            path = Path(folder, name)
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                found[str(path.relative_to(root))] = (f"-> {path.readlink()}", 0)
            else:
                text = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(root))] = (text, mode)
    return found


def plan_of(root: Path, id: str, *globs: str, trusted: bool = True) -> UndoPlan:
    records = KeptFolder(root).records()
    [record] = [record for record in records if record.id == id]
    return plan_undo(root, record, left_to_undo(records)[id], globs, trusted=trusted)


def undone(root: Path, id: str, by: str, *globs: str) -> Undone:
    plan = plan_of(root, id, *globs)
    assert not plan.those("changed", "refused", "unkept")
    return undo(root, plan, by)


def outcomes(plan: UndoPlan) -> dict[str, str]:
    return {file.key.label: file.outcome for file in plan.files}


def changed_by(root: Path, act: Callable[[FileTools], object], id: str = "run", **options: Any) -> None:
    with kept_by(RunKeeper(root, id, **options)):
        act(tools_of(root))


PATHS = st.sampled_from(["a", "b", "d/a", "d/e/a", "new/x", "link", "d/link", "to_d/a", "to_d/fresh"])
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("write_file"), PATHS, st.sampled_from(["", "one", "two\n"])),
        st.tuples(st.just("edit_file"), PATHS, st.just("o"), st.just("0")),
        st.tuples(st.just("delete_file"), PATHS),
        st.tuples(st.just("move_file"), PATHS, PATHS),
        st.tuples(st.just("make_directory"), st.sampled_from(["d/e", "new", "a", "new/x/y", "to_d/z"])),
    ),
    max_size=12,
)


@given(CALLS, CALLS)
def test_any_calls_are_undone_exactly_and_redone_exactly(first: list[Any], second: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # thousands of them take minutes
        root = Path(folder)
        (root / "d" / "e").mkdir(parents=True)
        (root / "a").write_text("once")
        (root / "d" / "a").write_text("other")
        (root / "d" / "a").chmod(0o640)
        (root / "link").symlink_to("a")
        (root / "d" / "link").symlink_to("/nowhere")
        (root / "to_d").symlink_to("d")
        trees = [tree(root)]
        for id, calls in (("first", first), ("second", second)):
            with kept_by(RunKeeper(root, id)):
                for name, *args in calls:
                    with contextlib.suppress(FileRefusedError):
                        getattr(tools_of(root), name)(*args)
            trees.append(tree(root))

        for id in ("second", "first"):
            if any(record.id == id for record in KeptFolder(root).records()):
                undone(root, id, f"undo-{id}")
            assert tree(root) == trees[-2 if id == "second" else 0]
        assert plan_last(root, KeptFolder(root).records(), trusted=True) is None
        for id in ("first", "second"):
            if any(record.id == f"undo-{id}" for record in KeptFolder(root).records()):
                undone(root, f"undo-{id}", f"redo-{id}")
            assert tree(root) == trees[1 if id == "first" else 2]


@pytest.mark.parametrize(
    ("since", "why"),
    [
        (lambda path: path.write_text("mine"), "it has changed since"),
        (lambda path: path.chmod(0o755), "its mode has changed since"),
        (lambda path: path.unlink(), "it has been removed since"),
        (lambda path: (path.unlink(), path.symlink_to("b")), "it has changed since"),
        (lambda path: (path.unlink(), path.mkdir()), "it has changed since"),
    ],
    ids=["content", "mode", "removed", "link", "folder"],
)
def test_what_has_changed_since_is_not_undone_but_others_can_be(
    tmp_path: Path, since: Callable[[Path], object], why: str
) -> None:
    (tmp_path / "a").write_text("before")
    changed_by(tmp_path, lambda tools: [tools.write_file(name, "after") for name in ("a", "b")])
    since(tmp_path / "a")
    left = tree(tmp_path)

    plan = plan_of(tmp_path, "run")
    assert [(file.key.path, file.why) for file in plan.those("changed")] == [("a", why)]
    undone(tmp_path, "run", "undo", "!a")
    assert tree(tmp_path) == {name: what for name, what in left.items() if name != "b"}


def test_a_change_between_the_plan_and_the_undo_is_left_alone(tmp_path: Path) -> None:
    changed_by(tmp_path, lambda tools: [tools.write_file(name, "after") for name in ("a", "b")])
    plan = plan_of(tmp_path, "run")
    (tmp_path / "a").write_text("mine")

    done = undo(tmp_path, plan, "undo")
    assert done.failed == {FileKey("a"): "it has changed just now"}
    assert list(done.files) == [FileKey("b")]
    assert (tmp_path / "a").read_text() == "mine"


def test_undoing_follows_no_link_that_took_the_place_of_a_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (root / "d", outside):
        folder.mkdir(parents=True)
        (folder / "a").write_text("same")
    changed_by(root, lambda tools: tools.write_file("d/a", "after"))
    (outside / "a").write_text("after")
    shutil.rmtree(root / "d")
    (root / "d").symlink_to(outside)

    plan = plan_of(root, "run")
    assert [file.why for file in plan.those("refused")] == ["the link d leads outside the root folder"]
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "a").write_text("after")
    (root / "d").unlink()
    (root / "d").symlink_to("elsewhere")
    plan = plan_of(root, "run")
    assert [file.why for file in plan.those("refused")] == ["a part of it has become a link"]

    (root / "d").unlink()
    (root / "d").mkdir()
    (root / "d" / "a").write_text("after")
    (root / "d" / "a").chmod(0o644)
    plan = plan_of(root, "run")
    shutil.rmtree(root / "d")
    (root / "d").symlink_to(outside)
    assert undo(root, plan, "undo").failed != {}
    assert (outside / "a").read_text() == "after"


def test_links_swapped_in_while_files_are_undone_lead_nowhere(tmp_path: Path) -> None:
    root, outside, away = tmp_path / "project", tmp_path / "outside", tmp_path / "away"
    for folder in (root / "d", outside):
        folder.mkdir(parents=True)
    for number in range(20):
        (root / "d" / str(number)).write_text("before")
    changed_by(root, lambda tools: [tools.write_file(f"d/{number}", "after") for number in range(20)])
    for number in range(20):
        shutil.copy2(root / "d" / str(number), outside / str(number))
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "d").rename(away)
            (root / "d").symlink_to(outside)
            (root / "d").unlink()
            away.rename(root / "d")

    thread = threading.Thread(target=swap)
    plan = plan_of(root, "run")
    thread.start()
    try:
        undo(root, plan, "undo")
    finally:
        stop.set()
        thread.join()
    assert {path.read_text() for path in outside.iterdir()} == {"after"}


def test_two_runs_that_change_a_file_are_undone_in_turn_and_not_across(tmp_path: Path) -> None:
    for id in ("one", "two"):
        changed_by(tmp_path, lambda tools, id=id: tools.write_file("a", id), id)
    assert outcomes(plan_of(tmp_path, "one")) == {"a": "changed"}

    for id, left in (("two", "one"), ("one", None)):
        plan = plan_last(tmp_path, KeptFolder(tmp_path).records(), trusted=True)
        assert plan is not None
        assert plan.record.id == id
        undo(tmp_path, plan, f"undo-{id}")
        assert ((tmp_path / "a").read_text() if left else None) == left
    assert not (tmp_path / "a").exists()


def test_a_run_that_goes_on_after_it_was_undone_can_be_undone_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    keeper = RunKeeper(tmp_path, "run")
    for text in ("once", "again"):
        with kept_by(keeper):
            tools_of(tmp_path).write_file("a", text)
        undone(tmp_path, "run", f"undo-{text}")
        assert (tmp_path / "a").read_text() == "before"


def test_a_new_folder_stays_if_it_holds_what_the_run_did_not_make(tmp_path: Path) -> None:
    changed_by(tmp_path, lambda tools: tools.write_file("new/deep/a", "x"))
    (tmp_path / "new" / "mine").write_text("mine")

    assert outcomes(plan_of(tmp_path, "run")) == {"new": "left", "new/deep": "undo", "new/deep/a": "undo"}
    undone(tmp_path, "run", "undo")
    assert sorted(tree(tmp_path)) == ["new", "new/mine"]
    assert plan_last(tmp_path, KeptFolder(tmp_path).records(), trusted=True) is None


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


def test_an_undo_is_refused_where_what_it_replaces_could_not_be_kept(tmp_path: Path) -> None:
    changed_by(tmp_path, lambda tools: tools.write_file("a", "x"))
    plan = plan_of(tmp_path, "run")
    (tmp_path / ".llm-do").rename(tmp_path / "elsewhere")
    (tmp_path / ".llm-do").symlink_to("elsewhere")

    assert list(undo(tmp_path, plan, "undo").failed) == [FileKey("a")]
    assert (tmp_path / "a").read_text() == "x"


def test_files_below_another_root_are_restored_in_a_trusted_folder_only(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for folder in (project / ".git", other):
        folder.mkdir(parents=True)
        (folder / "a").write_text("before")
    with kept_by(RunKeeper(project, "run")):
        Root(other).write("a", b"after")
        Root(project).write(".git/a", b"after")
        Root(project).write("b", b"after")

    where = f"{other}/a"
    assert outcomes(plan_of(project, "run", trusted=False)) == {".git/a": "refused", where: "refused", "b": "undo"}
    assert outcomes(plan_of(project, "run", f"{other}/**")) == {where: "undo"}
    shutil.move(project, tmp_path / "moved")
    undone(tmp_path / "moved", "run", "undo")
    assert ((other / "a").read_text(), (tmp_path / "moved" / ".git" / "a").read_text()) == ("before", "before")


RECORD = {"run": "run", "of": None, "thread": None, "user": None, "time": 0}


@pytest.mark.parametrize(
    "line",
    [
        {"path": "../a"},
        {"path": "/etc/a"},
        {"path": ".llm-do/state.db"},
        {"path": ".LLM-DO/undo/lock"},
        {"path": "a", "root": "../.."},
        {"path": "a", "root": "/srv/.llm-do"},
        {"path": "a", "before": {"kind": "file", "sha256": "../../../secret", "size": 1, "mode": 0o600}},
        {"path": "a", "before": None},
        {"path": "a", "time": "soon"},
        {"path": "a", "n": []},
    ],
    ids=lambda line: json.dumps(line),
)
def test_a_record_that_no_run_can_have_written_restores_nothing(tmp_path: Path, line: dict[str, Any]) -> None:
    change = {"n": 1, "root": None, "before": {"kind": "missing"}, "after": {"kind": "folder"}, "time": 1}
    folder = tmp_path / ".llm-do" / "undo" / "records"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text(f'{json.dumps(RECORD)}\n{json.dumps({**change, **line})}\nnonsense\n[1]\n"x"\n')

    [record] = KeptFolder(tmp_path).records()
    assert record.files == {}


def test_a_content_that_was_damaged_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    changed_by(tmp_path, lambda tools: tools.write_file("a", "after"))
    [content] = (tmp_path / ".llm-do" / "undo" / "files").glob("*/*")
    content.write_text("else")

    assert undo(tmp_path, plan_of(tmp_path, "run"), "undo").failed != {}
    assert (tmp_path / "a").read_text() == "after"


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


def test_deleting_a_thread_drops_what_its_runs_have_replaced(tmp_path: Path) -> None:
    for id, options in (("a", {"thread": "t"}), ("b", {"thread": "t", "user": "u"}), ("c", {})):
        (tmp_path / id).write_text(id)
        changed_by(tmp_path, lambda tools, id=id: tools.delete_file(id), id, **options)
    undone(tmp_path, "a", "undo-a")
    kept = KeptFolder(tmp_path)
    kept.drop_thread("t", None)
    assert [record.id for record in kept.records()] == ["b", "c"]
    assert len(list((tmp_path / ".llm-do" / "undo" / "files").glob("*/*"))) == 2


def test_parallel_changes_of_one_run_are_all_undone(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / str(number)).write_text("before")
    before = tree(tmp_path)
    keeper = RunKeeper(tmp_path, "run")

    def work(number: int) -> None:
        with kept_by(keeper):
            for turn in range(5):
                tools_of(tmp_path).write_file(str((number + turn) % 8), f"{number} {turn}")
                tools_of(tmp_path).write_file(f"new/{number}/{turn}", "x")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes(plan_of(tmp_path, "run")).values()) == {"undo"}
    undone(tmp_path, "run", "undo")
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_what_can_be_undone(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("undo_kills.py")), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 50


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

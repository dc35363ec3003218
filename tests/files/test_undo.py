"""What file tools change is undone exactly; what has changed since is left alone."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.files.changes.change_record import ChangedFile, ChangeRecord, FileKey
from llm_do.files.changes.file_states import MISSING, FileState
from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.changes.undo_plan import left_to_undo, plan_last
from llm_do.files.changes.undoing import undo
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from tests.files.undo_support import changed_by, outcomes, plan_of, tools_of, tree, undone

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


@pytest.mark.slow
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


RECORD = {"run": "run", "of": None, "time": 0}


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
        {"path": "a", "n": math.inf},
        {"path": "a", "time": math.nan},
        {"path": "a", "time": 10**400},
        {"path": "a", "before": {"kind": "file", "sha256": "", "size": 10**400, "mode": None}},
        {"path": "a", "before": {"kind": "file", "sha256": "", "size": -1, "mode": None}},
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
    changed_by(tmp_path, lambda tools: tools.write_file("b", "it prevents no change either"))
    assert (tmp_path / "b").exists()


def test_long_chains_and_circles_of_undos_end() -> None:
    files = {FileKey("a"): ChangedFile(MISSING, after=[FileState("folder")])}
    records = [ChangeRecord(str(n), str(n - 1) if n else None, files=files) for n in range(5_001)]
    left = left_to_undo(records)
    assert [len(left[str(n)]) for n in (0, 1, 5_000)] == [1, 0, 1]
    left = left_to_undo([ChangeRecord("a", "b", files=files), ChangeRecord("b", "a", files=files)])
    assert left.keys() == {"a", "b"}


def test_a_content_that_was_damaged_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    changed_by(tmp_path, lambda tools: tools.write_file("a", "after"))
    [content] = (tmp_path / ".llm-do" / "undo" / "files").glob("*/*")
    content.write_text("else")

    assert undo(tmp_path, plan_of(tmp_path, "run"), "undo").failed != {}
    assert (tmp_path / "a").read_text() == "after"


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

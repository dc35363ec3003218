"""The temporary files of a test session: what llm-do leaves is found, and what killed sessions left goes."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

import pytest

from llm_do.concurrency.temporary_folders import make_temporary_folder, remove_temporary_folder
from tests.support import session_folder


def test_temporary_files_of_this_process_and_its_children_are_in_the_folder_of_the_session() -> None:
    folder = Path(os.environ["TESTS_FOLDER"], "tmp")
    assert (tempfile.gettempdir(), os.environ["TMPDIR"]) == (str(folder), str(folder))
    assert len(str(folder)) < 50  # the path of a socket below it may have 107 bytes


def test_a_folder_that_llm_do_leaves_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(session_folder, "_PATIENCE", 0)
    monkeypatch.delitem(sys.modules, "llm_do.toolsets.shell.sandbox.confinement", raising=False)  # others keep theirs
    (tmp_path / "tmpabc").mkdir()
    assert session_folder.left_by_llm_do() == []
    folder = make_temporary_folder("notes", tmp_path)
    assert session_folder.left_by_llm_do() == [folder.name]
    remove_temporary_folder(folder)
    assert session_folder.left_by_llm_do() == []


def test_the_folder_of_a_session_that_was_killed_goes_with_the_next_one(tmp_path: Path) -> None:
    for name in ("killed", "running", "strange"):
        (tmp_path / name).mkdir()
    for name in ("killed", "running"):
        (tmp_path / name / "lock").touch()
    with (tmp_path / "running" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for each in list(tmp_path.iterdir()):
            session_folder._remove_if_abandoned(each)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["running", "strange"]

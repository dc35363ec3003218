"""Temporary folders go however their process ends, and what is made in their place later is left alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llm_do.concurrency.temporary_folders import make_temporary_folder, remove_temporary_folder, temporary_folder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a lifeline on Linux only")

SCRIPT = """
import os, sys
from pathlib import Path
from llm_do.concurrency.lifeline import cut_lifeline
from llm_do.concurrency.temporary_folders import make_temporary_folder, remove_temporary_folder

gone = make_temporary_folder("gone", Path(sys.argv[1]))
remove_temporary_folder(gone)
gone.mkdir()  # somebody else's now
kept = make_temporary_folder("kept", Path(sys.argv[1]))
(kept / "folder").mkdir()
(kept / "folder" / "file").touch()
print(gone.name, kept.name, flush=True)
sys.stdin.readline()
if sys.argv[2] == "cut":
    cut_lifeline()
os._exit(0)
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "cut", "exit"])
def test_a_folder_goes_with_its_process_and_one_that_was_removed_is_forgotten(tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), end]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    gone, kept = process.stdout.readline().split()
    assert {path.name for path in tmp_path.iterdir()} == {gone, kept}

    if end.startswith("SIG"):
        process.send_signal(signal.Signals[end])
    process.communicate("\n")

    deadline = time.monotonic() + 60
    while (tmp_path / kept).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [path.name for path in tmp_path.iterdir()] == [gone]


def test_only_its_user_may_open_a_folder_which_goes_with_its_block(tmp_path: Path) -> None:
    def fail() -> None:
        with temporary_folder("notes", tmp_path) as folder:
            assert (folder.parent, folder.name.startswith("llm-do-notes-")) == (tmp_path, True)
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "notes").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llm-do-616161").mkdir()
    names = iter([b"aaa", b"bbb"])
    monkeypatch.setattr("os.urandom", lambda size: next(names))
    monkeypatch.setattr("llm_do.concurrency.temporary_folders.remove_if_killed", lambda folder: None)
    folder = make_temporary_folder(parent=tmp_path)
    remove_temporary_folder(folder)
    assert (folder.name, [path.name for path in tmp_path.iterdir()]) == ("llm-do-626262", ["llm-do-616161"])


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        make_temporary_folder(parent=tmp_path / "missing")

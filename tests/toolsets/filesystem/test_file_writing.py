"""Writing, editing, moving and deleting are all or nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llm_do.files.refusals import FileRefusedError
from llm_do.toolsets.filesystem import filesystem_project
from tests.toolsets.filesystem.support import Call, configured, context


def test_a_file_is_written_and_replaced(call: Call, project: Path) -> None:
    assert call("write_file", path="a/b.txt", content="ä\n") == "Made a/b.txt, 3 bytes"
    assert call("write_file", path="a/b.txt", content="") == "Replaced a/b.txt, 0 bytes"
    assert (project / "a/b.txt").read_bytes() == b""


def test_an_edit_replaces_the_one_place(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("one two three")
    assert call("edit_file", path="a.txt", old="two", new="2") == "Edited a.txt"
    assert (project / "a.txt").read_text() == "one 2 three"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("four", "4", "does not contain the text"),
        ("aa", "b", "more than once"),
        ("", "b", "is empty"),
        ("one", "one", "the same text"),
    ],
)
def test_an_edit_that_is_not_exact_changes_nothing(call: Call, project: Path, old: str, new: str, why: str) -> None:
    (project / "a.txt").write_text("one aaa")
    with pytest.raises(FileRefusedError, match=why):
        call("edit_file", path="a.txt", old=old, new=new)
    assert (project / "a.txt").read_text() == "one aaa"


def test_an_edit_keeps_the_files_line_endings(call: Call, project: Path) -> None:
    (project / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    call("edit_file", path="a.txt", old="one\ntwo\n", new="1\n2\n")
    assert (project / "a.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"


def test_a_binary_file_is_not_edited(call: Call, project: Path) -> None:
    (project / "latin").write_bytes(b"caf\xe9 a")
    (project / "bin").write_bytes(b"a\0")
    for path in ("latin", "bin"):
        before = (project / path).read_bytes()
        with pytest.raises(FileRefusedError) as caught:
            call("edit_file", path=path, old="a", new="b")
        assert caught.value.reason == "not_text"
        assert (project / path).read_bytes() == before


def test_text_that_cannot_be_encoded_is_refused(call: Call, project: Path) -> None:
    toolset = filesystem_project(context(project))
    with pytest.raises(FileRefusedError, match="surrogate"):
        toolset.tools["write_file"].function("a.txt", "\ud800")  # pyright: ignore[reportCallIssue]
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("roots", [(".", "."), (".", "docs")], ids=["one root", "a root in a root"])
def test_concurrent_edits_are_all_kept(project: Path, roots: tuple[str, str]) -> None:
    (project / "docs").mkdir()
    (project / "docs/a.txt").write_text("".join(f"<{n}>" for n in range(20)))
    edits: list[Any] = [configured(project, root=root).tools["edit_file"].function for root in roots]
    start = threading.Barrier(4)

    def edit(first: int) -> None:
        start.wait()
        which = first // 5 % 2
        for n in range(first, first + 5):
            edits[which]("docs/a.txt" if roots[which] == "." else "a.txt", f"<{n}>", f"({n})")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(edit, range(0, 20, 5)))
    assert (project / "docs/a.txt").read_text() == "".join(f"({n})" for n in range(20))


def test_files_are_moved_deleted_and_folders_made(call: Call, project: Path) -> None:
    (project / "a.txt").write_text("x")
    assert call("make_directory", path="d/e") == "Made d/e"
    assert call("make_directory", path="d/e") == "d/e was there already"
    assert call("move_file", source="a.txt", target="d/e/b.txt") == "Moved a.txt to d/e/b.txt"
    assert (project / "d/e/b.txt").read_text() == "x"
    assert call("delete_file", path="d/e/b.txt") == "Deleted d/e/b.txt"
    assert list((project / "d/e").iterdir()) == []


def test_a_move_onto_an_existing_path_is_refused(call: Call, project: Path) -> None:
    (project / "a").write_text("a")
    (project / "b").write_text("b")
    with pytest.raises(FileRefusedError, match="a file or folder of that name already exists"):
        call("move_file", source="a", target="b")
    assert (project / "b").read_text() == "b"

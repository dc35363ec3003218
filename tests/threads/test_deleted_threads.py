"""Deleting a thread drops what is kept to undo its runs, whoever deletes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, Runtime
from llm_do.errors import StoreError
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.threads import Conversations, SqliteStore, open_store
from tests.threads.thread_support import done

FILES = {
    "project.json": '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}',
    "main.agent": "---\nname: main\nmodel: script:answers.yaml\ntoolsets: [filesystem_project]\n---\nWrite.\n",
    "answers.yaml": 2 * '- tools: [{name: write_file, args: {path: "{input}.md", content: "{input}"}}]\n- text: done\n',
}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A project in which runs of three threads have changed files."""
    return write_desk(tmp_path)


def write_desk(folder: Path) -> Path:
    """Write the project, in which nothing has run yet."""
    root = folder / "desk"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


def write_files(root: Path, store: Any = None) -> None:
    """Run the project on a thread, on the same thread of a user, on another thread, and without a thread."""

    async def act() -> None:
        runtime = Runtime(Project.load(root), approvals="approve_all", store=store, record=True)
        await runtime.run("one", thread_id="t")
        await runtime.run("two", thread_id="t", user_id="ann")
        await runtime.run("three", thread_id="other")
        await runtime.run("four")
        await runtime.aclose()

    asyncio.run(act())


def kept_files(root: Path) -> set[str]:
    return {key.path for record in KeptFolder(root).records() for key in record.files}


async def _by_store(root: Path) -> None:
    assert await open_store(root).delete_thread("t")


async def _by_conversations(root: Path) -> None:
    await Conversations(open_store(root)).delete("t")


async def _by_file(root: Path) -> None:
    assert await SqliteStore(root / ".llm-do" / "state.db").delete_thread("t")


@pytest.mark.parametrize("delete", [_by_store, _by_conversations, _by_file])
def test_deleting_a_thread_from_python_drops_what_is_kept_of_its_runs(
    desk: Path, delete: Callable[[Path], Awaitable[None]]
) -> None:
    write_files(desk)
    assert kept_files(desk) == {"one.md", "two.md", "three.md", "four.md"}

    asyncio.run(delete(desk))  # type: ignore[arg-type]

    assert kept_files(desk) == {"two.md", "three.md", "four.md"}


@pytest.mark.slow
def test_a_store_of_several_projects_drops_it_in_each_and_only_of_its_own_runs(desk: Path, tmp_path: Path) -> None:
    shared, lamp = SqliteStore(tmp_path / "shared.db"), tmp_path / "lamp"
    lamp.mkdir()
    for name, text in FILES.items():
        (lamp / name).write_text(text)
    write_files(desk)  # the same threads, in its own store
    write_files(desk, shared)
    write_files(lamp, shared)

    assert done(shared.delete_thread("t"))

    assert kept_files(lamp) == {"two.md", "three.md", "four.md"}
    assert len(KeptFolder(desk).records()) == 7
    assert done(open_store(desk).thread("t")) is not None


def test_what_cannot_be_dropped_is_an_error_that_names_the_folder(desk: Path) -> None:
    write_files(desk)
    lock = desk / ".llm-do" / "undo" / "lock"
    lock.unlink()
    lock.mkdir()

    with pytest.raises(StoreError, match="thread 't' is deleted, but what is kept to undo its runs isn't") as caught:
        done(open_store(desk).delete_thread("t"))

    assert str(desk / ".llm-do" / "undo") in caught.value.message
    assert done(open_store(desk).thread("t")) is None

"""A store with tampered rows: unreadable ones are reported, and nothing loops for ever."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from llm_do.errors import StoreError
from llm_do.threads.managers.transfer import export_thread
from llm_do.threads.sqlite.checked_rows import BLOBS, NUMBERS, TIMES
from llm_do.threads.sqlite.sqlite_store import SqliteStore
from tests.cli.cli_processes import Ended, run_forked, write_project
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import script

T = TypeVar("T")


def made(root: Path) -> Path:
    """A store with a thread of two turns."""
    for _ in range(2):
        result = carry_out(runtime_of([agent("main", script("done"))], root=root, record=True), thread_id="t")
        assert result.status == "completed", result.error
    return root / ".llm-do" / "state.db"


def changed(file: Path, sql: str, *values: object) -> Path:
    with closing(sqlite3.connect(file)) as db, db:
        assert db.execute(sql, values).rowcount > 0
    return file


def asked(file: Path, question: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async def ask() -> T:
        store = SqliteStore(file)
        try:
            return await asyncio.wait_for(question(store), 20)
        finally:
            await store.aclose()

    return asyncio.run(ask())


def test_messages_in_a_cycle_are_read_once(tmp_path: Path) -> None:
    file = changed(made(tmp_path), "UPDATE messages SET parent = (SELECT head FROM threads) WHERE parent IS NULL")

    async def read(store: SqliteStore) -> int:
        record = await store.thread("t")
        assert record is not None
        assert len(await export_thread(store, record)) == 5
        return len(await store.history(record.head))

    assert asked(file, read) == 4


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("config", "[1]"),
        ("config", '{"model": 5}'),
        ("config", '{"colour": "red"}'),
        ("state", "{"),
        ("toolkits", "[1]"),
        ("branches", "5"),
        ("carried", "[]"),
        ("carried", "["),
        ("updated", "soon"),
        ("created", b"\0\xff"),
    ],
)
def test_a_thread_that_cannot_be_read_is_named(tmp_path: Path, column: str, value: object) -> None:
    file = changed(made(tmp_path), f"UPDATE threads SET {column} = ?", value)
    with pytest.raises(StoreError, match=r"thread 't' can't be read|which isn't a time \(id 't'\)"):
        asked(file, lambda store: store.threads())
    result = carry_out(runtime_of([agent("main", script("done"))], root=tmp_path, record=True), thread_id="t")
    assert result.status == "failed"
    assert isinstance(result.error, StoreError)


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = changed(made(tmp_path), "UPDATE runs SET started = 'soon'")
    with pytest.raises(StoreError, match="has data that can't be read: `started` is 'soon', which isn't a time"):
        asked(file, lambda store: store.runs())


def test_the_checked_columns_are_those_that_are_declared_so(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path))) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        declared = [row[1:3] for table in tables for row in db.execute(f"PRAGMA table_info({table})")]
    columns = {kind: {name for name, own in declared if own == kind} for kind in ("BLOB", "REAL", "INTEGER", "TEXT")}

    assert columns["BLOB"] == BLOBS
    assert (columns["REAL"] | columns["INTEGER"]) - columns["TEXT"] == TIMES | NUMBERS
    assert not columns["TEXT"] & (TIMES | NUMBERS)


DEEP = "[" * 100_000 + "]" * 100_000
SHAPES = ["[1]", '"x"', '{"a": 1}', "{", "5", DEEP]
COLUMNS = {
    "runs": ("id", "status", "entry", "thread", "user", "started", "finished", "usage", "models", "beginning"),
    "messages": ("time", "run", "metadata"),
    "events": ("time", "type", "data"),
    "exchanges": ("call", "path", "model", "begun", "answer"),
    "questions": ("kind", "asked", "request"),
    "steps": ("kind", "data"),
}


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a durable run that waits for an answer, and a thread."""
    answers = "- tools: [{name: send, args: {to: ann}}]\n- text: done"
    root = write_project(tmp_path_factory.mktemp("asking"), answers)
    trusted = {"LLM_DO_TRUST": "1"}
    assert run_forked("run", "--thread", "t", "--reject-all", "Go", cwd=root, env=trusted).code == 0
    assert run_forked("run", "--durable", "--run-id", "d1", "Go", cwd=root, env=trusted).code == 5
    with closing(sqlite3.connect(root / ".llm-do" / "state.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return root


def looked_at(asking: Path, root: Path, table: str, column: str, value: object) -> Iterator[tuple[str, Ended]]:
    """Change a column of a store, and look at it with each command."""
    shutil.copytree(asking, root)
    with suppress(sqlite3.IntegrityError):
        changed(root / ".llm-do" / "state.db", f"UPDATE {table} SET {column} = ?", value)
    for line in (
        "runs list",
        "runs show d1",
        "runs show d1 --requests",
        "runs compare",
        "runs show d1 --html run.html",
        "threads show t",
        "threads export t",
        "approvals pending",
        "approvals show d1.1",
        "approvals answer d1.1 allow",
        "resume d1",
        "runs drop d1",
    ):
        yield line, run_forked(*line.split(), cwd=root, env={"LLM_DO_TRUST": "1"})


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", [f"{table}.{column}" for table, columns in COLUMNS.items() for column in columns])
def test_no_command_fails_by_itself_on_a_damaged_store(asking: Path, tmp_path: Path, place: str) -> None:
    table, column = place.split(".")
    is_json = column in ("usage", "models", "beginning", "metadata", "data", "answer", "request")
    values = [b"\0\xff", "\x1b[31mX\x1b]0;title\x07", *(SHAPES if is_json else [2**62, 1e308])]
    for number, value in enumerate(values):
        for line, ended in looked_at(asking, tmp_path / str(number), table, column, value):
            shown = f"{line} with {place} = {str(value)[:30]!r}: {ended.err}"
            assert "llm-do itself failed" not in ended.err, shown
            assert "Traceback" not in ended.err, shown
            assert "\x1b" not in ended.out + ended.err, shown


def test_data_that_cannot_be_read_is_named_with_its_store(asking: Path, tmp_path: Path) -> None:
    found = {
        "runs.usage = 5": ("runs list", "state.db has data that can't be read: run 'd1': TypeError: "),
        "runs.status = x'61'": (
            "runs list",
            "state.db has data that can't be read: `status` is b'a', which",
        ),
        "runs.beginning = '[1]'": ("resume d1", "what the run began with can't be read: "),
        "questions.request = '[]'": ("approvals show d1.1", "question d1.1 can't be read: "),
    }
    for number, (change, (line, reason)) in enumerate(found.items()):
        root = tmp_path / str(number)
        shutil.copytree(asking, root)
        table, _, assignment = change.partition(".")
        changed(root / ".llm-do" / "state.db", f"UPDATE {table} SET {assignment}")

        ended = run_forked(*line.split(), cwd=root, env={"LLM_DO_TRUST": "1"})

        assert ended.code == 1, ended
        assert reason in " ".join(ended.err.split()), ended.err
        assert "damaged" in ended.err


def test_a_schema_that_is_no_text_is_damage(asking: Path, tmp_path: Path) -> None:
    shutil.copytree(asking, tmp_path / "desk")
    file = tmp_path / "desk" / ".llm-do" / "state.db"
    data = file.read_bytes()
    names = b"tablethreadsthreads"
    assert names in data
    file.write_bytes(data.replace(names, b"table\xff\xfe\xfdeadsthreads"))

    for line in ("runs list", "threads show t", "resume d1", "run Go"):
        ended = run_forked(*line.split(), cwd=tmp_path / "desk", env={"LLM_DO_TRUST": "1"})
        assert f"{file} is damaged: malformed" in " ".join(ended.err.split()), ended
        assert "`sqlite3 FILE .recover` may recover its content" in " ".join(ended.err.split())

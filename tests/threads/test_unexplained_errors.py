"""Errors that a store doesn't explain reach every run that waits for the record."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from llm_do import StoreError, UsageError
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.threads import SqliteStore
from llm_do.threads.sqlite.connection import translate_sqlite_errors
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script


@pytest.mark.parametrize(
    "error", [OverflowError("too large"), RuntimeError("odd"), UsageError("a lone surrogate")], ids=repr
)
def test_whatever_a_store_raises_no_run_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Before a tool is called, the run waits until that is on disk, and so ends here."""

    async def write(self: SqliteStore, batch: Batch) -> None:
        raise error

    def tool() -> str:
        """Do something."""
        return "done"

    monkeypatch.setattr(SqliteStore, "write", write)
    notices: list[str] = []
    runtime = runtime_of(
        [agent("main", script(call("tool"), "ok"), tools=[tool])], root=tmp_path, options={"record": True}
    )
    object.__setattr__(runtime.config, "notice", notices.append)

    result = carry_out(runtime)

    assert (result.status, type(result.error)) == ("failed", StoreError)
    assert [each for each in notices if each.startswith("the journal can't be written: ")]


def test_a_number_that_is_too_large_for_sqlite_is_a_fault_of_the_store() -> None:
    with (
        closing(sqlite3.connect(":memory:")) as db,
        pytest.raises(StoreError, match="a number of more than 64 bits"),
        translate_sqlite_errors("s"),
    ):
        db.execute("SELECT ?", (2**64,))

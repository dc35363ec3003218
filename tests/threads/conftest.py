"""Store fixtures: the same tests run on every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llm_do.threads import SqliteStore, memory_store
from llm_do.threads.postgres.postgres_store import PostgresStore

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore
    from tests.support.postgres import Server


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    """Provide an empty store of each kind."""
    made: SqlStore
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        made = PostgresStore(server.url())
    else:
        made = memory_store() if request.param == "memory" else SqliteStore(tmp_path / "state.db")
    yield made
    asyncio.run(made.aclose())

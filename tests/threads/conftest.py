"""Store fixtures: the same tests run on every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_do.threads import SqliteStore, memory_store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore]:
    """Provide an empty store of each kind."""
    made = memory_store() if request.param == "memory" else SqliteStore(tmp_path / "state.db")
    yield made
    asyncio.run(made.aclose())

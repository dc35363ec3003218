"""A state folder of its own for each test, and terminals in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.cli_terminal import Screen


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Where this test's answers are kept; the test itself reads them too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return {"LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def terminal(state: dict[str, str | None]) -> Iterator[Callable[..., Screen]]:
    started: list[Screen] = []

    def start(*args: str, cwd: Path, columns: int = 100) -> Screen:
        started.append(Screen(args, cwd, columns, 60, **state))
        return started[-1]

    yield start
    for child in started:
        child.close()

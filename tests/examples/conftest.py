"""Fixtures for tests of examples: a copy of an example to run in, and an environment without API keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do import Project

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_model_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No example runs on a model that the environment names."""
    monkeypatch.delenv("LLM_DO_MODEL", raising=False)


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], Project]:
    """Links a copy of an example."""

    def load(name: str) -> Project:
        folder = tmp_path / name
        shutil.copytree(
            ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns("out", "__pycache__", ".llm-do")
        )
        return Project.load(folder)

    return load

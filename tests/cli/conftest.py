"""Fixtures for the tests of the command line; their helpers are in `cli_processes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import write_project


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Writes a project below the test's folder."""
    return lambda answers="", **files: write_project(tmp_path / "project", answers, **files)

"""Ends the process that runs the commands of the documents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.cli_processes import BATCH


@pytest.fixture(scope="session", autouse=True)
def _batch() -> Iterator[None]:
    yield
    BATCH.close()

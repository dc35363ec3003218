"""A PostgreSQL server of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.postgres import Server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop and restart."""
    from tests.support.postgres import missing, start_server, stop_server

    if (reason := missing()) is not None:
        pytest.skip(reason)
    server = start_server()
    yield server
    stop_server(server)

"""What most tests of the server use: the folder of a project, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.web.served import Served


@pytest.fixture
def root(tmp_path: Path) -> Path:
    from tests.web.served import write_desk  # skips where the server's packages aren't installed

    return write_desk(tmp_path / "desk")


@pytest.fixture
def desk(root: Path) -> Iterator[Served]:
    from tests.web.served import serving

    with serving([root]) as found:
        yield found

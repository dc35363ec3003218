from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.toolsets.filesystem import filesystem_project
from tests.toolsets.filesystem.support import Call, caller, context


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def call(project: Path) -> Call:
    return caller(filesystem_project(context(project)))

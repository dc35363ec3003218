"""Arguments that aren't text: reported once, in the requested format, and nothing runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked, write_project

BROKEN = os.fsdecode(b"h\xffi")


@pytest.mark.parametrize("args", [[BROKEN], ["hi", "--thread", BROKEN], ["hi", "--user", BROKEN]])
@pytest.mark.slow
def test_an_argument_that_is_not_utf8_is_a_usage_error(tmp_path: Path, args: list[str]) -> None:
    write_project(tmp_path)
    ended = run_forked("run", str(tmp_path), *args, "--output", "json")
    assert ended.code == 2
    assert ended.json["status"] == "invalid"
    assert "is not UTF-8" in ended.err
    assert not (tmp_path / ".llm-do").exists()


@pytest.mark.slow
def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = write_project(tmp_path / BROKEN)
    assert run_forked("run", str(folder), "hi", "--no-record").code == 0

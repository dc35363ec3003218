"""A login survives a restart: contexts and states of toolkits belong to the thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.threads.thread_support import child, record_of, state_file


def turn(root: Path, model: str) -> Any:
    out, err = child("login_process.py", root, model).communicate()
    assert out, err
    return json.loads(out)


@pytest.mark.slow
def test_another_process_with_another_model_continues_with_the_login_unlocked(tmp_path: Path) -> None:
    turn(tmp_path, "first")

    output, results, shown, toolkits = turn(tmp_path, "second")

    assert output == "closed"
    assert [text for _, _, text in results] == ["hello ann", "closed 2 for ann"]
    assert "desk_close" in shown
    assert toolkits == {"desk": {"context": {"tickets": [1, 2], "user": "ann"}, "unlocked_states": ["in"]}}
    assert record_of(state_file(tmp_path)).toolkits == toolkits


@pytest.mark.slow
def test_without_the_login_the_tool_is_hidden(tmp_path: Path) -> None:
    _, results, shown, _ = turn(tmp_path, "second")

    assert "desk_close" not in shown
    assert results[0][1] == "failed"

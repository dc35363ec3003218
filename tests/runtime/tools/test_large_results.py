"""Results too long for the model are truncated and saved in full to a file, if the project keeps records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from llm_do.runtime.tools.tool_output import limit_output
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def result_text(root: Path, tool: Any, **fields: Any) -> str:
    spec = agent("main", script(call(tool.__name__), "done"), tools=[tool])
    result = carry_out(runtime_of([spec], root=root, **fields))
    return results_of(result.messages)[0][2]


def kept(root: Path, text: str) -> str:
    found = re.search(r"all of it is in the file (\S+) \.\.\.\]", text)
    assert found is not None, text[:300]
    return (root / found[1]).read_text(encoding="utf-8")


def long_text() -> str:
    """Return a long text."""
    return "".join(f"line {number} äöü\n" for number in range(20_000))


def long_data() -> list[int]:
    """Return a long list."""
    return list(range(50_000))


def short() -> str:
    """Return a short text."""
    return "little"


def test_a_long_text_is_saved_in_full(tmp_path: Path) -> None:
    text = result_text(tmp_path, long_text)
    assert len(text.encode()) < 66_000
    assert text.startswith("line 0 äöü\n")
    assert text.endswith("line 19999 äöü\n")
    assert kept(tmp_path, text) == long_text()


def test_long_data_is_saved_in_full_as_json(tmp_path: Path) -> None:
    text = result_text(tmp_path, long_data, max_result_bytes=1000)
    assert kept(tmp_path, text).startswith("[0, 1, 2")
    assert kept(tmp_path, text).endswith("49999]")


def test_a_short_result_makes_no_file(tmp_path: Path) -> None:
    assert result_text(tmp_path, short) == "little"
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_keeps_no_records_saves_no_results(tmp_path: Path) -> None:
    text = result_text(tmp_path, long_text, record=False)
    assert "ask for a smaller part" in text
    assert list(tmp_path.iterdir()) == []


def test_saved_results_follow_no_links_and_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "project"
    root.mkdir()
    (root / ".llm-do").symlink_to(outside)
    assert "ask for a smaller part" in result_text(root, long_text)
    assert list(outside.iterdir()) == []
    (root / ".llm-do").unlink()
    kept(root, result_text(root, long_text))
    files = [path for path in (root / ".llm-do/artifacts").iterdir() if path.suffix == ".txt"]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(1, 100))
def test_head_and_tail_are_cut_from_the_text(text: str, limit: int) -> None:
    shortened = limit_output(text, limit).for_model
    if len(text.encode()) <= limit:
        assert shortened == text
        return
    found = re.fullmatch(
        r"(.*)\n\[\.\.\. (\d+) of (\d+) bytes left out; ask for a smaller part \.\.\.\]\n(.*)", shortened, re.DOTALL
    )
    assert found is not None
    head, cut, size, tail = found.groups()
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + int(cut) == int(size) == len(text.encode())
    assert len(head.encode()) + len(tail.encode()) <= limit


@each_row("letter", ["a", "ä", "字", "🙂"])
@each_row("limit", [400, 1000, 65_536])
def test_a_truncated_result_with_its_notice_is_within_the_limit(letter: str, limit: int) -> None:
    shortened = limit_output(letter * limit * 2, limit, lambda _: ".llm-do/artifacts/0123456789abcdef.txt").for_model
    assert limit - 20 <= len(shortened.encode()) <= limit
    assert shortened.startswith(letter * (limit // 30))

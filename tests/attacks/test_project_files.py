"""Project files that are huge, expand exponentially, or aren't regular files are refused immediately."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from llm_do.diagnostics.codes.shape import unknown_version
from llm_do.diagnostics.diagnostic import Location
from llm_do.errors import ModelUnavailableError
from llm_do.models.builtin.script_file import load_script, parse_script
from llm_do.ui.reports.diagnostic_text import render_text
from tests.cli.cli_processes import run_forked
from tests.support.tables import each_row


def shown(line: str, column: int, end: int | None = None) -> list[str]:
    place = Location("a.json", 1, column, 1, end) if end is not None else Location("a.json", 1, column)
    return render_text([unknown_version("2").at(place)], lambda file: line).splitlines()


@pytest.mark.parametrize("column", [1, 5_000_000, 9_999_990])
def test_a_fault_in_a_very_long_line_is_shown_quickly(column: int) -> None:
    line = "[" * 10_000_000
    begun = time.process_time()
    text = shown(line, column, column + 5)
    assert time.process_time() - begun < 1
    assert "^" in text[2]
    assert max(map(len, text)) <= 130


@each_row("length", [100, 3_999, 4_001, 4_100, 9_000])
def test_the_caret_points_at_the_fault_however_long_the_line(length: int) -> None:
    for column in {1, 50, length // 2, length - 1}:
        line = "." * (column - 1) + "X" + "." * (length - column)
        _, source, caret, _ = shown(line, column, column + 1)
        assert source[caret.index("^")] == "X"
        assert source.startswith("  1 | …") or column < 120
        assert source.endswith("…") or length - column < 120
        assert not (source.startswith("  1 | …") and column == 1)


def test_a_script_whose_aliases_multiply_is_refused() -> None:
    lists = [f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]" for level in range(1, 10)]
    text = "- tools: [{name: a, args: {x0: &x0 [1], " + ", ".join(lists) + "}}]\n"
    with pytest.raises(ModelUnavailableError, match="has aliases that expand to more than"):
        parse_script(text, Path("answers.yaml"))


def test_a_script_may_use_aliases() -> None:
    text = "- tools: [&call {name: a, args: {x: 1}}, *call]\n"
    assert len(parse_script(text, Path("answers.yaml")).agents[None][0].turn.tools) == 2  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_script_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "answers.yaml")
    with pytest.raises(ModelUnavailableError, match="not a file"):
        load_script(tmp_path / "answers.yaml")


@pytest.mark.parametrize(
    "spoiling",
    [
        pytest.param("sys.stdout.close()", marks=pytest.mark.slow),
        pytest.param("sys.stdout = None", marks=pytest.mark.slow),
        pytest.param(
            "sys.stdout = type('Odd', (), {'write': lambda *a: 1 / 0, 'flush': lambda *a: 1 / 0})()",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_python_file_that_breaks_standard_output_is_checked_quietly(tmp_path: Path, spoiling: str) -> None:
    (tmp_path / "project.json").write_text(
        '{"version": 1, "name": "p", "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["t.py"]}'
    )
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\n---\nDo.\n")
    (tmp_path / "t.py").write_text(f"import sys\n\n{spoiling}\n")
    ended = run_forked("check", str(tmp_path))
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert "no errors" in ended.out + ended.err

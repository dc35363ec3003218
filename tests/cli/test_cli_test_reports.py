"""Reports of `llm-do test`: options that don't go together, and a comparison with an earlier report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do import UsageError
from llm_do.cli.actions.testing.options import TestOptions
from tests.cli.cli_processes import run_forked
from tests.testing.cases.case_projects import desk

TESTS = """
tests:
  - name: keeps minutes
    input: Write the minutes.
    answer: {write_file: once}
    expect: {output: {contains: Made}}
"""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"base": "base.json"}, "--base is for --format markdown"),
        ({"base": "base.json", "form": "json"}, "--base is for --format markdown"),
        ({"watch": True, "record": True}, "--watch and --record exclude each other"),
        ({"watch": True, "record_missing": True}, "--watch and --record-missing exclude each other"),
        ({"watch": True, "live": True}, "--watch and --live exclude each other"),
        ({"watch": True, "form": "json"}, "--watch reports many times"),
    ],
)
def test_options_that_do_not_go_together(options: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        TestOptions(**options).check()

    assert problem in caught.value.message
    assert caught.value.hint


def test_markdown_compares_with_an_earlier_report(tmp_path: Path) -> None:
    root = desk(tmp_path, TESTS)
    assert run_forked("test", "-j", "1", "--format", "json", "--output", "base.json", cwd=root).code == 0
    test = root / "tests/minutes.test.yaml"
    test.write_text(test.read_text().replace("Made", "Nothing"))

    done = run_forked("test", "-j", "1", "--format", "markdown", "--base", "base.json", cwd=root)

    assert done.code == 1
    assert done.out.startswith("### ❌ llm-do test: 1 failed\n")
    assert "| <code>keeps minutes</code> | ❌ failed | 0/1 | 3 |" in done.out
    assert "| passed before |\n" in done.out
    assert "1 failed" in done.err


def test_a_base_that_cannot_be_read_ends_before_anything_runs(tmp_path: Path) -> None:
    root = desk(tmp_path, TESTS)
    (root / "base.json").write_text(json.dumps({"report": 7}))

    done = run_forked("test", "--format", "markdown", "--base", "base.json", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "base.json is a report of version 7, and this llm-do reads version 1" in done.err

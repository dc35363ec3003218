"""Secrets of the environment occur in nothing that a command prints or writes, but for the output of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, run_forked
from tests.support.tables import each_row

SECRET = "tr0ub4dor-and-more"

AGENT = """\
---
name: main
model: script:answers.yaml
tools: [show, refuse]
---
Help.
"""

TOOLS = '''\
import os


def show() -> str:
    """Show it."""
    return "it is " + os.environ["ACME_API_KEY"]


def refuse() -> str:
    """Refuse it."""
    raise ValueError("no login with " + os.environ["ACME_API_KEY"])


def entry(input, ctx):
    raise ValueError("no login with " + os.environ["ACME_API_KEY"])
'''

ANSWERS = "- tools: [{name: show}]\n- tools: [{name: refuse}]\n- text: fin"

MANIFEST = """{"version": 1, "name": "desk", "entry": {"function": "tools.py:entry"}, "allow_cli_input": true,
 "agent_files": ["main.agent"], "python_files": ["tools.py"]}"""


@pytest.fixture
def leaky(project: Callable[..., Path]) -> Path:
    root = project(ANSWERS, agent=AGENT)
    (root / "tools.py").write_text(f"{TOOLS}\n\nTOOLS = [show, refuse]\n", encoding="utf-8")
    (root / "project.json").write_text(MANIFEST, encoding="utf-8")
    return root


def carry_out(root: Path, *words: str) -> Ended:
    return run_forked(*words, cwd=root, env={"ACME_API_KEY": SECRET})


@each_row("options", [[], ["--debug"], ["-v"], ["-vv"], ["--format", "json"], ["--format", "events"]])
def test_an_exception_that_names_a_secret_is_printed_without_it(leaky: Path, options: list[str]) -> None:
    ended = carry_out(leaky, "run", "--entry", "main", "--approve-all", *options, ".", "go")
    failed = carry_out(leaky, "run", *options, ".", "go")

    assert (ended.code, failed.code) == (0, 1)
    assert "refuse raised ValueError: no login with [redacted ACME_API_KEY]" in ended.err
    assert "entry raised ValueError: no login with [redacted ACME_API_KEY]" in failed.err
    assert SECRET not in ended.err + ended.out + failed.err + failed.out


def test_the_output_of_a_run_is_exact_and_all_else_that_is_printed_is_not(leaky: Path) -> None:
    (leaky / "answers.yaml").write_text("- tools: [{name: show}]\n- text: '{tool}'\n", encoding="utf-8")
    words = ("run", "--entry", "main", "--approve-all")

    text = carry_out(leaky, *words, ".", "go")
    data = carry_out(leaky, *words, "--format", "json", ".", "go").json
    events = carry_out(leaky, *words, "--format", "events", ".", "go")

    assert text.out == f"it is {SECRET}\n"
    assert data.pop("output") == f"it is {SECRET}"
    assert SECRET not in json.dumps(data)
    assert SECRET not in events.out
    assert "it is [redacted ACME_API_KEY]" in events.out


def test_the_results_of_a_batch_have_errors_without_secrets(leaky: Path) -> None:
    (leaky / "inputs.jsonl").write_text('"a"\n"b"\n', encoding="utf-8")

    ended = carry_out(leaky, "map", ".", "inputs.jsonl")

    assert ended.code == 1
    assert len(ended.out.splitlines()) == 2
    assert "[redacted ACME_API_KEY]" in ended.out
    assert "[redacted ACME_API_KEY]" in ended.err
    assert SECRET not in ended.out + ended.err


@pytest.mark.parametrize("format", ["text", "json", "junit", "markdown"])
def test_a_report_of_tests_has_no_secrets(leaky: Path, format: str) -> None:
    (leaky / "answers.yaml").write_text("- tools: [{name: show}]\n- text: '{tool}'\n", encoding="utf-8")
    (leaky / "tests").mkdir()
    (leaky / "tests/desk.test.yaml").write_text(
        "tests:\n"
        "  - {name: shows, entry: main, answer: {show: once}, input: go, expect: {output: {contains: nothing}}}\n"
        "  - {name: fails, input: go, expect: {output: {contains: nothing}}}\n",
        encoding="utf-8",
    )

    ended = carry_out(leaky, "test", ".", "--format", format)

    assert ended.code == 1
    assert ended.out.count("[redacted ACME_API_KEY]") >= 2
    assert SECRET not in ended.out + ended.err

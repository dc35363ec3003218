"""The patterns in docs/editors.md match the output of `llm-do check`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from llm_do.linker.linker import check_project
from llm_do.ui.reports.diagnostic_text import render_text
from scripts.pages.markdown import FENCED

PAGE = (Path(__file__).parents[2] / "docs" / "editors.md").read_text(encoding="utf-8")


def pattern() -> dict[str, str | int]:
    """The pattern for VS Code's list of problems."""
    (tasks,) = (json.loads(found["body"]) for found in FENCED.finditer(PAGE) if '"problemMatcher"' in found["body"])
    return tasks["tasks"][0]["problemMatcher"]["pattern"]


def test_the_pattern_for_vs_code_finds_every_finding_and_its_place(tmp_path: Path) -> None:
    agent = "---\nname: main\ntools: [add, 'a:b: c']\nmodle: x\n---\nAdd.\n"
    (tmp_path / "main.agent").write_text(agent, encoding="utf-8")
    matcher = pattern()
    report = check_project(tmp_path)
    lines = render_text(report.diagnostics, lambda _: agent).splitlines()

    found = [match for line in lines if (match := re.match(str(matcher["regexp"]), line))]

    def of(name: str) -> list[str]:
        return [match[int(matcher[name])] for match in found]

    assert len(report.diagnostics) == 3
    assert of("file") == [item.file for item in report.diagnostics]
    assert of("line") == [str(item.line) for item in report.diagnostics]
    assert of("column") == [str(item.column) for item in report.diagnostics]
    assert of("severity") == [item.severity for item in report.diagnostics]
    assert of("code") == [item.code for item in report.diagnostics]
    assert of("message") == [item.message for item in report.diagnostics]

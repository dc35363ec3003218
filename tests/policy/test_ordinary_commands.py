"""Ordinary commands run without approval under the rule that a person would write for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.policy.arguments import resolve_by_text
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from llm_do.project.tools.builtin_toolsets import SHELL
from tests.support.tables import each_row
from tests.toolsets.shell.support import configured, decision

LISTED = (Path(__file__).parent / "ordinary_commands.txt").read_text(encoding="utf-8").splitlines()
ROWS = [tuple(line.split(" | ", 1)) for line in LISTED if not line.startswith("#")]

LINES = [
    (["git add *", "git commit *"], "git add -A && git commit -m 'Fix /api'"),
    (["cargo build *", "cargo test *", "tail *"], "cargo build 2>&1 | tail -n 5; cargo test 2>/dev/null"),
    (["pytest *", "tail *"], "pytest -x 2>&1 | tail -n 30"),
    (["make *"], "make lint && make test || make clean"),
    (["rg *", "wc *", "sort *"], "rg -l '/api' src | sort | wc -l"),
    (["npm run *"], "npm run build >/dev/null 2>&1 && npm run lint"),
    (["ls *"], "ls *.md src/*.py 2>/dev/null || ls -la"),
    (["curl -s http://127.0.0.1:8000/**", "jq *"], "curl -s http://127.0.0.1:8000/v1/x | jq -c '.items[] | .a'"),
    (["git diff * && git status"], "git diff --stat && git status"),
]


def call(line: str) -> ToolCallInfo:
    return ToolCallInfo(
        "shell", {"command": line}, primary="command", resolved=resolve_by_text(SHELL["shell"], {"command": line})
    )


@each_row("rule, line", ROWS)
def test_a_projects_rule_allows_it(rule: str, line: str) -> None:
    assert matches(parse_pattern(f"shell({rule})"), call(line))


@pytest.mark.parametrize("rows", [ROWS[::5], pytest.param(ROWS, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_toolsets_rule_allows_it(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    for rule, line in rows:
        found = decision(configured(tmp_path, "sh", allow=[rule]), line)
        assert found.effect == "allow", (rule, line, found.reason)


@pytest.mark.parametrize(("rules", "line"), LINES)
def test_a_line_of_several_commands_is_allowed(tmp_path: Path, rules: list[str], line: str) -> None:
    found = decision(configured(tmp_path, "sh", allow=rules), line)
    assert found.effect == "allow", found.reason

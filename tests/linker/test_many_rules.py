"""A project of thousands of rules and agents is checked with work that grows as they do, not as their product."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.linker.linker import check_project
from llm_do.policy import decision
from llm_do.text import words
from llm_do.text.globs import Glob
from tests.support.tables import each_row


def agents_of_their_own(number: int) -> str:
    return f"a*{number}*:write_file(a*b*c*'{{{number}'*)"


def unknown_agents(number: int) -> str:
    return f"a*b*c*'{{{number}'*:write_file"


def unknown_tools(number: int) -> str:
    return f"w*r*'{{{number}'*"


def paths(number: int) -> str:
    return f"files.write(a*b*'{{{number}'*/**/*c)"


def calls_of_the_entry(number: int) -> str:
    return f"main:write_file(a*b*c*'{{{number}'*)"


def call_paths(number: int) -> str:
    return f"main/a*{number}*'{{':read_file"


def write_project(root: Path, size: int, rule: Callable[[int], str]) -> Path:
    root.mkdir()
    half = range(size // 2)
    approvals = {"allow": [rule(number) for number in half], "deny": [rule(number + size // 2) for number in half]}
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "approvals": approvals}
    (root / "project.json").write_text(json.dumps(manifest))
    names = [f"a{number}" for number in range(size)]
    for name, toolsets in [("main", ["filesystem_cwd", *names]), *((name, ["filesystem_cwd"]) for name in names)]:
        listed = ", ".join(toolsets)
        (root / f"{name}.agent").write_text(f"---\nname: {name}\nmodel: test\ntoolsets: [{listed}]\n---\nHelp.\n")
    return root


@pytest.mark.slow
@each_row("rule", [agents_of_their_own, unknown_agents, unknown_tools, paths, calls_of_the_entry, call_paths])
def test_the_work_grows_with_the_rules_and_the_agents(
    rule: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0

    def counting(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def count(*args: object, **fields: object) -> object:
            nonlocal counted
            counted += 1
            return real(*args, **fields)

        monkeypatch.setattr(owner, name, count)

    counting(Glob, "matches")
    counting(decision, "matches")
    counting(decision, "covers")
    counting(words, "_rank")

    def work(size: int) -> int:
        nonlocal counted
        counted = 0
        report = check_project(write_project(tmp_path / f"{rule.__name__}{size}", size, rule))
        assert not [each for each in report.diagnostics if each.severity == "error"]
        return counted

    few, many = work(60), work(240)
    assert many < 8 * few + 2000

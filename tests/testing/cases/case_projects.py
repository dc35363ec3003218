"""A small project with tests, and running these in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from llm_do.linker.test_linker import check_with_tests
from llm_do.testing.cases.case import Case, Plan, all_cases
from llm_do.testing.cases.results import CaseResult, Failure
from llm_do.testing.cases.running import CaseRun, run_case

AGENT = """\
---
name: secretary
model: {model}
toolsets: [filesystem_project]
---
Keep minutes.
"""

ANSWERS: list[dict[str, Any]] = [
    {"tools": [{"name": "read_file", "args": {"path": "notes.txt"}}]},
    {"tools": [{"name": "write_file", "args": {"path": "out/minutes.md", "content": "# Minutes\n- one\n"}}]},
    {"text": "Made out/minutes.md."},
]


def desk(
    root: Path,
    tests: str,
    *,
    model: str = "script:answers.yaml",
    answers: object = ANSWERS,
    files: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Path:
    """A project whose secretary reads notes and writes minutes, and its tests."""
    settings = {"version": 1, "entry": {"agent": "secretary"}, "agent_files": ["*.agent"]} | manifest
    settings.setdefault("approvals", {"allow": ["read_file"]})
    written = {
        "project.json": json.dumps(settings),
        "secretary.agent": AGENT.format(model=model),
        "answers.yaml": json.dumps(answers),
        "notes.txt": "Decided: one.\n",
        "tests/minutes.test.yaml": dedent(tests),
        **(files or {}),
    }
    for name, text in written.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def cases(root: Path) -> list[Case]:
    """The project's cases, which have no faults."""
    checked = check_with_tests(root)
    faults = [f"{item.place}: {item.message}" for item in checked.diagnostics if item.severity == "error"]
    if faults:
        raise AssertionError(faults)
    return all_cases(checked.tests)


def run(root: Path, plan: Plan | None = None) -> CaseRun:
    """What comes of the project's only case."""
    (case,) = cases(root)
    return run_case(root, case, plan or Plan())


def result(root: Path, plan: Plan | None = None) -> CaseResult:
    """The result of the project's only case."""
    return run(root, plan).result


def shown(failure: Failure) -> str:
    """A failure's place and sentence."""
    place = "" if failure.file is None else f"{failure.file.as_posix()}:{failure.line}: "
    return place + failure.what

"""Every example has tests of its own, and they pass without key or network."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.cli.actions.project_templates import TEMPLATES
from llm_do.testing.cases.case import Case, Plan
from llm_do.testing.cases.running import run_case
from tests.testing.cases.case_projects import cases

EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples").iterdir() if path.is_dir())


@pytest.mark.sample(6)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_tests_of_an_example_pass(example: Path) -> None:
    found: list[Case] = cases(example)
    assert found
    results = [run_case(example, case, Plan()).result for case in found]
    assert [(result.name, result.failures) for result in results if not result.ok] == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_tests_that_init_writes_pass(tmp_path: Path, template: str) -> None:
    for name, text in TEMPLATES[template].files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("NAME", '"new"').replace("MODEL", ""), encoding="utf-8")
    assert [run_case(tmp_path, case, Plan()).result.failures for case in cases(tmp_path)] == [()]

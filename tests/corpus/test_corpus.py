"""Every wrong project of the corpus gives exactly what is written beside it, and put right it is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.spec.codes import CODES
from tests.corpus.cases import Case, cases, checked, write

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_wrong_project_gives_exactly_what_is_written_beside_it(case: Case, tmp_path: Path) -> None:
    report = checked(case, write(case, tmp_path))
    found = [f"{item.code} {item.file}:{item.line}:{item.column}" for item in report.diagnostics]
    if case.found is None:
        assert any(line.startswith(case.code) for line in found)
    else:
        assert found == case.found
    for item in report.diagnostics:
        assert str(tmp_path) not in item.message
        assert item.message == item.message.strip(" .")


@pytest.mark.parametrize("case", [case for case in CASES if case.fixed], ids=lambda case: case.id)
def test_a_project_put_right_is_clean(case: Case, tmp_path: Path) -> None:
    assert checked(case, write(case, tmp_path, fixed=True), seconds=60).diagnostics == ()


def test_the_first_case_of_every_code_shows_how_it_is_put_right() -> None:
    first: dict[str, Case] = {}
    for case in CASES:
        first.setdefault(case.code, case)
    assert [code for code in CODES if code not in first] == []
    assert [case.id for case in first.values() if not case.fixed] == []


def test_the_example_of_a_code_gives_that_code_alone() -> None:
    first: dict[str, Case] = {}
    for case in CASES:
        first.setdefault(case.code, case)
    for case in first.values():
        assert case.found is None or {line[:5] for line in case.found} == {case.code}, case.id

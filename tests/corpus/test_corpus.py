"""Every wrong project of the corpus gives exactly the diagnostics beside it, and fixed it is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.diagnostics.known_codes import CODES
from llm_do.linker.test_linker import check_with_tests
from tests.corpus.cases import Case, all_files, cases, harms, linked, write
from tests.support.tables import each_row

CASES = cases()
FIRST: dict[str, Case] = {}
for _case in CASES:
    FIRST.setdefault(_case.code, _case)

MARKED = [
    pytest.param(case, id=case.id, marks=pytest.mark.slow if harms(case) and case is not FIRST[case.code] else ())
    for case in CASES
]


@pytest.mark.sample(100)
@pytest.mark.parametrize("case", MARKED)
def test_a_wrong_project_gives_exactly_the_diagnostics_beside_it(case: Case) -> None:
    report = linked(case)
    found = [f"{item.code} {item.file}:{item.line}:{item.column}" for item in report.diagnostics]
    if case.found is None:
        assert any(line.startswith(case.code) for line in found)
    else:
        assert found == case.found
    for item in report.diagnostics:
        assert str(report.root) not in item.message
        assert item.message == item.message.strip(" .")
        assert "\\n" not in item.message


@pytest.mark.sample(25)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES if case.fixed])
def test_a_fixed_project_is_clean(case: Case, tmp_path: Path) -> None:
    assert check_with_tests(write(case, tmp_path, fixed=True)).diagnostics == ()


def test_the_first_case_of_every_code_is_fixed() -> None:
    assert [code for code in CODES if code not in FIRST] == []
    assert [case.id for case in FIRST.values() if not case.fixed] == []


def test_the_example_of_a_code_gives_that_code_alone() -> None:
    for case in FIRST.values():
        assert case.found is None or {line[:5] for line in case.found} == {case.code}, case.id


@each_row("code", CODES)
def test_the_example_beside_a_code_is_part_of_its_first_case(code: str) -> None:
    case, declared = FIRST[code], CODES[code]
    wrong, right = all_files(case), all_files(case, fixed=True)
    if not any(file.kind == "expression" for file in wrong.values()):  # bytes that the example can only describe
        assert any(declared.wrong in file.text for file in wrong.values())
    assert code == "LD102" or any(declared.right in file.text for file in right.values())

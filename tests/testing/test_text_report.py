"""The report at a terminal: places stand out, lines fit, one cause is one block, and control characters are escaped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.results import CaseResult, Failure, SuiteResult
from llm_do.testing.reports.text_report import Progress, failure_lines, summary_line

FILE = Path("tests/minutes.test.yaml")
MISS = Failure(
    Path("main.agent"),
    6,
    "the cassette has no answer for request 1 of main: main's instructions have changed since the recording",
    block="--- recorded\n+++ now\n@@ -1 +1 @@\n-Keep minutes.\n+Keep short minutes.",
    hint="Record it with `llm-do test --record-missing` (2 requests, $0.0100 last time).",
    last_time=Usage(requests=2, cost_usd=0.01),
)


def case(name: str, *failures: Failure, status: str = "failed") -> CaseResult:
    return CaseResult(f"{FILE}::{name}", name, FILE, 3, None, status, failures)  # type: ignore[arg-type]


def plain(text: str, style: str) -> str:
    return text


def marked(text: str, style: str) -> str:
    return f"<{style}>{text}</>" if text else ""


def lines(*cases: CaseResult, width: int = 60, paint: object = plain) -> list[str]:
    return list(failure_lines(SuiteResult(cases), width, paint, Path("desk")))  # type: ignore[arg-type]


def test_a_place_stands_out_and_a_diff_is_coloured() -> None:
    shown = lines(case("greets", replace(MISS, what="it has changed")), paint=marked)
    assert "<name>desk/main.agent:6:</> it has changed" in shown
    assert "<bad>    -Keep minutes.</>" in shown
    assert "<good>    +Keep short minutes.</>" in shown


def test_lines_fit_the_terminal_but_for_diffs_and_quoted_text() -> None:
    long = "word " * 30
    failure = Failure(FILE, 9, long, long, long, f"{long}\n│ {long}", long)
    shown = lines(case("greets", failure))
    assert [line for line in shown if len(line) > 60] == [f"    │ {long}".rstrip()]


def test_tests_of_one_cause_are_one_block_with_what_they_cost_together() -> None:
    shown = lines(case("greets", MISS), case("asks", MISS), case("leaves", Failure(FILE, 5, "too many steps")))
    assert shown.count("    -Keep minutes.") == 1
    assert shown[1] == f"── 2 tests have one cause {'─' * 34}"
    text = " ".join(" ".join(shown).split())
    assert "desk/main.agent:6: main's instructions have changed since the recording" in text
    assert "Record them with `llm-do test --record-missing` (4 requests, $0.0200 last time)." in text
    assert "desk/tests/minutes.test.yaml:3 greets" in text
    assert "desk/tests/minutes.test.yaml:5: too many steps" in text


def test_of_very_many_tests_some_are_named() -> None:
    shown = lines(*(case(f"test {number}", MISS) for number in range(50)))
    assert "  … 40 more" in shown


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\u202eabc", "\x00"])
def test_nothing_that_a_terminal_obeys_is_shown(text: str) -> None:
    failure = Failure(FILE, 1, text, text, text, text, text)
    assert text not in "\n".join(lines(case(text, failure)))


def test_marks_of_a_file_go_on_in_the_next_line() -> None:
    written: list[str] = []
    progress = Progress(written.append, 40, plain, Path())  # type: ignore[arg-type]
    for number in range(30):
        progress.add(case(str(number), status="passed"))
    progress.end()
    shown = "".join(written)
    assert max(map(len, shown.splitlines())) <= 40
    assert shown.count(".") == 30 + FILE.as_posix().count(".")


def test_the_last_line_counts() -> None:
    suite = SuiteResult((case("a", status="passed"), case("b"), case("c", status="skipped")), (), 1.5)
    assert summary_line(suite, plain, interrupted=True) == "interrupted: 1 failed, 1 passed, 1 not run in 1.50 s"

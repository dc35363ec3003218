"""Results of test cases as values, and as JSON data that reads back."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.results import CaseResult, Failure, SuiteResult

FILE = Path("tests/minutes.test.yaml")
FAILURE = Failure(FILE, 9, "the output doesn't contain 'Made'", "Made", "Did", "- Made\n+ Did", "Look again.")
FAILED = CaseResult(
    "tests/minutes.test.yaml::writes",
    "writes",
    FILE,
    4,
    "small",
    "failed",
    (FAILURE, Failure(what="it has no cassette", last_time=Usage(requests=2))),
    repeats=3,
    passed_repeats=2,
    steps=4,
    tool_calls=2,
    usage=Usage(requests=4, input_tokens=10, cost_usd=0.1),
    cost=Decimal("0.1"),
    seconds=1.5,
    output="Did it.",
)
SKIPPED = CaseResult("a::b", "b", FILE, 1, None, "skipped", reason="interrupted")


def test_results_read_back_from_json() -> None:
    suite = SuiteResult((FAILED, SKIPPED), ("small", "large"), 2.25)
    data = json.loads(json.dumps(suite.to_dict()))
    assert SuiteResult.from_dict(data) == suite
    assert data["cases"][0]["file"] == "tests/minutes.test.yaml"
    assert data["cases"][0]["cost_usd"] == 0.1


def test_a_suite_is_ok_unless_a_case_failed() -> None:
    assert SuiteResult((SKIPPED,)).ok
    assert not SuiteResult((SKIPPED, FAILED)).ok
    assert SuiteResult((SKIPPED, FAILED)).count("failed") == 1

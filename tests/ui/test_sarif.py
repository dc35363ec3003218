"""SARIF: what code scanning services demand of a report, and that every code has its rule."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st

from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.known_codes import CODES
from llm_do.ui.reports.sarif import render_sarif


def report(*found: Diagnostic) -> dict[str, Any]:
    text = render_sarif(found, "1.2.3", "shop/project.json")
    assert text.isascii()
    (run,) = json.loads(text)["runs"]
    return run


def fault(file: str = "a.agent", code: str = "LD120", **options: Any) -> Diagnostic:
    return Diagnostic(code, CODES[code].severity, "wrong", Location(file, 2, 7, 2, 9), **options)


def test_the_log_names_its_version_and_schema() -> None:
    log = json.loads(render_sarif([], "1.2.3", "project.json"))

    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    assert log["runs"] == [
        {
            "tool": {"driver": {"name": "llm-do", "version": "1.2.3", "rules": []}},
            "columnKind": "unicodeCodePoints",
            "results": [],
        }
    ]


def test_a_finding_has_its_rule_message_and_place() -> None:
    (result,) = report(fault("agents/a.agent", hint="do this", block="line 1\nline 2"))["results"]

    assert result == {
        "ruleId": "LD120",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "wrong\ndo this\nline 1\nline 2"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "agents/a.agent", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 2, "startColumn": 7, "endLine": 2, "endColumn": 9},
                }
            }
        ],
    }


def test_a_place_without_an_end_has_none() -> None:
    (result,) = report(Diagnostic("LD801", "warning", "unused", Location("a.agent", 3)))["results"]

    assert result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 1}


def test_a_finding_about_the_project_as_a_whole_is_shown_at_its_manifest() -> None:
    (result,) = report(fault(""))["results"]

    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop/project.json"


def test_files_are_uris() -> None:
    uris = {
        item: report(fault(item))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        for item in ("my agents/ü #1.agent", "a:b.agent", "/home/ann/x y.json", "\udcff.agent")
    }

    assert uris == {
        "my agents/ü #1.agent": {"uri": "my%20agents/%C3%BC%20%231.agent", "uriBaseId": "%SRCROOT%"},
        "a:b.agent": {"uri": "a%3Ab.agent", "uriBaseId": "%SRCROOT%"},
        "/home/ann/x y.json": {"uri": "file:///home/ann/x%20y.json"},
        "\udcff.agent": {"uri": "%FF.agent", "uriBaseId": "%SRCROOT%"},
    }


def test_every_code_is_a_rule_and_results_refer_to_it() -> None:
    run = report(*(fault(code=code) for code in reversed(CODES)), fault())
    rules = run["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == list(CODES)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    for rule in rules:
        code = CODES[rule["id"]]
        assert rule["defaultConfiguration"] == {"level": code.severity}
        assert rule["shortDescription"]["text"] == f"{code.title}."
        assert rule["fullDescription"]["text"] == code.explanation
        assert code.fix in rule["help"]["text"]
        assert set(rule) == {"id", "shortDescription", "fullDescription", "help", "defaultConfiguration"}


def test_what_a_project_wrote_is_shown_escaped() -> None:
    (result,) = report(Diagnostic("LD120", "error", "\x1b[2Ja\nb", Location("a.agent"), "\u202ec"))["results"]

    assert result["message"]["text"] == "\\x1b[2Ja\nb\n\\u202ec"


def test_further_data_is_a_property_of_the_run() -> None:
    log = json.loads(render_sarif([], "1", "project.json", {"left_out": "tools.py"}))

    assert log["runs"][0]["properties"] == {"left_out": "tools.py"}


@given(st.text(), st.text(min_size=1), st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(1, 9))
def test_any_finding_makes_valid_places(
    message: str, file: str, line: int, column: int, end_line: int, end_column: int
) -> None:
    item = Diagnostic("LD120", "error", message, Location(file, line, column, end_line and line + end_line, end_column))
    (result,) = report(item)["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]

    assert all(value >= 1 for value in region.values())
    assert ("endLine" in region) == bool(end_line)
    assert uri.isascii()
    assert not any(char in uri for char in ' "<>\\^`{|}')

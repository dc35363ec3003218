"""Diagnostics as people, programs and GitHub read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.ui.reports.diagnostic_text import render_github, render_json, render_text, summary


def found(
    line: int, column: int, end: tuple[int, int] = (0, 0), message: str = "wrong", hint: str | None = None
) -> Diagnostic:
    return Diagnostic("LD120", "error", message, Location("a.agent", line, column, *end), hint)


def shown(item: Diagnostic, text: str | None, width: int | None = None) -> list[str]:
    return render_text([item], lambda _: text, width=width).splitlines()


def test_a_diagnostic_is_shown_as_a_compiler_does() -> None:
    assert shown(found(2, 7, (2, 9), hint='quote it: "no"'), "---\nname: no\n---\n") == [
        "a.agent:2:7: error[LD120]: wrong",
        "  2 | name: no",
        "    |       ^^",
        '    = quote it: "no"',
    ]


@pytest.mark.parametrize(
    ("text", "item", "line", "caret"),
    [
        ("name:", found(1, 6), "name:", "     ^"),
        ("name: ab", found(1, 7), "name: ab", "      ^"),
        ("a: [1,\n 2]", found(1, 4, (2, 3)), "a: [1,", "   ^^^"),
        ("\tx: 1", found(1, 2, (1, 3)), "    x: 1", "    ^"),
        ("ab\tx", found(1, 4, (1, 5)), "ab  x", "    ^"),
        ("日本: x", found(1, 5, (1, 6)), "日本: x", "      ^"),
        ("日本: x", found(1, 1, (1, 3)), "日本: x", "^^^^"),
        ("e\u0301: x", found(1, 5, (1, 6)), "e\u0301: x", "   ^"),
        ("a\x1b[31m: x", found(1, 9, (1, 10)), "a\\x1b[31m: x", "           ^"),
        ("a\u202e: x", found(1, 2, (1, 3)), "a\\u202e: x", " ^^^^^^"),
        ("a\u200b\U000e0041", found(1, 3, (1, 4)), "a\\u200b\\U000e0041", "       ^^^^^^^^^^"),
        ("a: 1\r", found(1, 4, (1, 5)), "a: 1", "   ^"),
        ("a: 1", found(1, 99, (1, 100)), "a: 1", "    ^"),
    ],
)
def test_the_caret_stands_below_what_is_wrong(text: str, item: Diagnostic, line: str, caret: str) -> None:
    lines = shown(item, text)
    assert lines[1] == f"  1 | {line}"
    assert lines[2] == f"    | {caret}"


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    for width in (40, 80, None):
        lines = shown(found(1, 501, (1, 505)), text, width)
        assert len(lines[1]) <= (width or 120)
        start = lines[2].index("^")
        assert lines[1][start : start + 4] == "HERE"
        assert lines[2].count("^") == 4
        assert lines[1].count("…") == 2


def test_a_place_that_is_longer_than_the_window_is_cut_too() -> None:
    lines = shown(found(1, 1, (1, 1000)), "x" * 1000, 60)
    assert len(lines[1]) <= 60
    assert len(lines[2]) <= 60


def test_a_file_that_is_gone_and_a_line_that_is_not_there_have_no_excerpt() -> None:
    assert shown(found(1, 1), None) == ["a.agent:1:1: error[LD120]: wrong"]
    assert shown(found(9, 1), "x") == ["a.agent:9:1: error[LD120]: wrong"]


def test_a_byte_order_mark_does_not_move_the_caret() -> None:
    assert shown(found(1, 1, (1, 4)), "\ufeffabc")[1:] == ["  1 | abc", "    | ^^^"]


def test_nothing_of_a_file_or_message_reaches_the_terminal_as_it_is() -> None:
    item = Diagnostic("LD120", "error", "a\x1b]0;x\x07\nb\u202e", Location("e\x1b[2J\n.agent"), "h\x1b\r")
    text = render_text([item], lambda _: None)
    assert text == "e\\x1b[2J\\n.agent:1:1: error[LD120]: a\\x1b]0;x\\x07\\nb\\u202e\n    = h\\x1b\\r\n"


def test_colours_are_there_only_when_asked_for() -> None:
    plain = render_text([found(1, 1, (1, 2), hint="h")], lambda _: "x")
    coloured = render_text([found(1, 1, (1, 2), hint="h")], lambda _: "x", color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[LD120]\x1b[0m" in coloured


def test_json_has_every_field_and_the_counts() -> None:
    warning = Diagnostic("LD801", "warning", "unused é", Location("b.agent", 3, 4))
    data = json.loads(render_json([found(2, 7, (2, 9), hint="h"), warning]))
    assert data == {
        "diagnostics": [
            {
                "code": "LD120",
                "severity": "error",
                "message": "wrong",
                "file": "a.agent",
                "line": 2,
                "column": 7,
                "end": {"line": 2, "column": 9},
                "hint": "h",
            },
            {
                "code": "LD801",
                "severity": "warning",
                "message": "unused é",
                "file": "b.agent",
                "line": 3,
                "column": 4,
                "end": None,
                "hint": None,
            },
        ],
        "errors": 1,
        "warnings": 1,
    }


def test_json_is_ascii_so_that_any_output_can_hold_it() -> None:
    assert render_json([Diagnostic("LD120", "error", "é\ud800", Location("\udcff"))]).isascii()


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (found(2, 7, (2, 9)), "::error file=a.agent,line=2,endLine=2,col=7,endColumn=9,title=LD120::wrong"),
        (found(2, 7, (4, 1)), "::error file=a.agent,line=2,endLine=4,title=LD120::wrong"),
        (found(2, 7), "::error file=a.agent,line=2,col=7,title=LD120::wrong"),
        (found(1, 1, message="50%\r\n::x", hint="a:b,c"), "::error file=a.agent,line=1,col=1,title=LD120::"
         "50%25%0D%0A::x%0Aa:b,c"),
        (
            Diagnostic("LD801", "warning", "unused", Location("a:b,c%\n.agent")),
            "::warning file=a%3Ab%2Cc%25%0A.agent,line=1,col=1,title=LD801::unused",
        ),
        (found(1, 1, message="\x1b[31m"), "::error file=a.agent,line=1,col=1,title=LD120::\\x1b[31m"),
    ],
)  # fmt: skip
def test_github_annotations_are_escaped(item: Diagnostic, line: str) -> None:
    assert render_github([item]) == line + "\n"


def test_a_summary_counts() -> None:
    warning = Diagnostic("LD801", "warning", "unused", Location("b.agent"))
    assert summary([]) == "no errors"
    assert summary([found(1, 1)]) == "1 error"
    assert summary([found(1, 1), found(2, 1), warning]) == "2 errors, 1 warning"
    assert summary([warning, warning]) == "no errors, 2 warnings"


@given(st.text(), st.integers(1, 5), st.integers(1, 40), st.integers(0, 5), st.integers(0, 60), st.integers(1, 90))
def test_any_place_in_any_text_can_be_shown(
    text: str, line: int, column: int, end_line: int, end_column: int, width: int
) -> None:
    item = found(line, column, (end_line, end_column), message=text, hint=text)
    out = render_text([item], lambda _: text, width=width)
    assert out.encode("utf-8")
    assert all(char.isprintable() or char == "\n" for char in out)
    assert 2 <= out.count("\n") <= 4
    assert render_github([item]).count("\n") == 1

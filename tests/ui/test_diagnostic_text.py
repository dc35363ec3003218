"""Diagnostics as text, as JSON and as GitHub annotations."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, strategies as st

from llm_do import LinkError
from llm_do.cli.actions.failure import failed_result
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.ui.reports.diagnostic_text import render_github, render_json, render_text, summary
from tests.support.tables import each_row


def fault(
    line: int, column: int, end: tuple[int, int] = (0, 0), message: str = "wrong", hint: str | None = None
) -> Diagnostic:
    return Diagnostic("LD120", "error", message, Location("a.agent", line, column, *end), hint)


def render(item: Diagnostic, text: str | None, width: int | None = None) -> list[str]:
    return render_text([item], lambda _: text, width=width).splitlines()


def test_places_are_links_to_their_files_where_a_folder_is_known() -> None:
    text = render_text([fault(1, 1)], lambda _: "a", folder=Path("/home/ann"))
    assert text.startswith("\x1b]8;;file:///home/ann/a.agent\x1b\\a.agent:1:1:\x1b]8;;\x1b\\ error[LD120]: wrong\n")
    without_file = Diagnostic("LD120", "error", "wrong", Location("", 1, 1))
    assert "\x1b" not in render_text([without_file], lambda _: None, folder=Path("/home/ann"))


def test_a_diagnostic_looks_like_a_compilers() -> None:
    assert render(fault(2, 7, (2, 9), hint='quote it: "no"'), "---\nname: no\n---\n") == [
        "a.agent:2:7: error[LD120]: wrong",
        "  2 | name: no",
        "    |       ^^",
        '    = quote it: "no"',
    ]


@each_row(
    "text, item, line, caret",
    [
        ("name:", fault(1, 6), "name:", "     ^"),
        ("name: ab", fault(1, 7), "name: ab", "      ^"),
        ("a: [1,\n 2]", fault(1, 4, (2, 3)), "a: [1,", "   ^^^"),
        ("\tx: 1", fault(1, 2, (1, 3)), "    x: 1", "    ^"),
        ("ab\tx", fault(1, 4, (1, 5)), "ab  x", "    ^"),
        ("日本: x", fault(1, 5, (1, 6)), "日本: x", "      ^"),
        ("日本: x", fault(1, 1, (1, 3)), "日本: x", "^^^^"),
        ("e\u0301: x", fault(1, 5, (1, 6)), "e\u0301: x", "   ^"),
        ("a\x1b[31m: x", fault(1, 9, (1, 10)), "a\\x1b[31m: x", "           ^"),
        ("a\u202e: x", fault(1, 2, (1, 3)), "a\\u202e: x", " ^^^^^^"),
        ("a\u200b\U000e0041", fault(1, 3, (1, 4)), "a\\u200b\\U000e0041", "       ^^^^^^^^^^"),
        ("a: 1\r", fault(1, 4, (1, 5)), "a: 1", "   ^"),
        ("a: 1", fault(1, 99, (1, 100)), "a: 1", "    ^"),
    ],
)
def test_the_caret_is_below_the_fault(text: str, item: Diagnostic, line: str, caret: str) -> None:
    lines = render(item, text)
    assert lines[1] == f"  1 | {line}"
    assert lines[2] == f"    | {caret}"


def test_a_long_line_is_cut_around_the_fault() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    for width in (40, 80, None):
        lines = render(fault(1, 501, (1, 505)), text, width)
        assert len(lines[1]) <= (width or 120)
        start = lines[2].index("^")
        assert lines[1][start : start + 4] == "HERE"
        assert lines[2].count("^") == 4
        assert lines[1].count("…") == 2


def test_a_fault_wider_than_the_terminal_is_cut() -> None:
    lines = render(fault(1, 1, (1, 1000)), "x" * 1000, 60)
    assert len(lines[1]) <= 60
    assert len(lines[2]) <= 60


def test_missing_files_and_lines_have_no_excerpt() -> None:
    assert render(fault(1, 1), None) == ["a.agent:1:1: error[LD120]: wrong"]
    assert render(fault(9, 1), "x") == ["a.agent:9:1: error[LD120]: wrong"]


def test_a_byte_order_mark_does_not_move_the_caret() -> None:
    assert render(fault(1, 1, (1, 4)), "\ufeffabc")[1:] == ["  1 | abc", "    | ^^^"]


def test_text_from_files_and_messages_is_sanitized() -> None:
    item = Diagnostic("LD120", "error", "a\x1b]0;x\x07\nb\u202e", Location("e\x1b[2J\n.agent"), "h\x1b\r")
    text = render_text([item], lambda _: None)
    assert text == "e\\x1b[2J\\n.agent:1:1: error[LD120]: a\\x1b]0;x\\x07\\nb\\u202e\n    = h\\x1b\\r\n"


def test_diagnostics_are_coloured_only_on_request() -> None:
    plain = render_text([fault(1, 1, (1, 2), hint="h")], lambda _: "x")
    coloured = render_text([fault(1, 1, (1, 2), hint="h")], lambda _: "x", color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[LD120]\x1b[0m" in coloured


def test_json_diagnostics_have_every_field_and_the_counts() -> None:
    warning = Diagnostic("LD801", "warning", "unused é", Location("b.agent", 3, 4))
    data = json.loads(render_json([fault(2, 7, (2, 9), hint="h"), warning]))
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


def test_the_block_of_a_diagnostic_is_shown_as_it_is_wherever_the_diagnostic_is() -> None:
    block = '"toolsets": {\n  "a": {}\x1b[2J\n}'
    found = Diagnostic("LD120", "error", "wrong", Location("a.agent", 1, 1, 1, 6), "write this", block)

    assert render_text([found], lambda _: "wrong: x\n").splitlines()[-4:] == [
        "    = write this",
        '      "toolsets": {',
        '        "a": {}\\x1b[2J',
        "      }",
    ]
    assert render_github([found]).endswith('wrong%0Awrite this%0A"toolsets": {%0A  "a": {}\\x1b[2J%0A}\n')
    (data,) = json.loads(render_json([found]))["diagnostics"]
    assert data["block"] == block
    assert Diagnostic.from_dict(data) == found
    (record,) = failed_result(LinkError("no", [found]))["errors"]
    assert record["block"] == block


def test_json_diagnostics_are_ascii() -> None:
    assert render_json([Diagnostic("LD120", "error", "é\ud800", Location("\udcff"))]).isascii()


@each_row("item, line", [
        (fault(2, 7, (2, 9)), "::error file=a.agent,line=2,endLine=2,col=7,endColumn=9,title=LD120::wrong"),
        (fault(2, 7, (4, 1)), "::error file=a.agent,line=2,endLine=4,title=LD120::wrong"),
        (fault(2, 7), "::error file=a.agent,line=2,col=7,title=LD120::wrong"),
        (fault(1, 1, message="50%\r\n::x", hint="a:b,c"), "::error file=a.agent,line=1,col=1,title=LD120::"
         "50%25%0D%0A::x%0Aa:b,c"),
        (
            Diagnostic("LD801", "warning", "unused", Location("a:b,c%\n.agent")),
            "::warning file=a%3Ab%2Cc%25%0A.agent,line=1,col=1,title=LD801::unused",
        ),
        (fault(1, 1, message="\x1b[31m"), "::error file=a.agent,line=1,col=1,title=LD120::\\x1b[31m"),
    ])  # fmt: skip
def test_github_annotations_are_escaped(item: Diagnostic, line: str) -> None:
    assert render_github([item]) == line + "\n"


def test_the_summary_counts_errors_and_warnings() -> None:
    warning = Diagnostic("LD801", "warning", "unused", Location("b.agent"))
    assert summary([]) == "no errors"
    assert summary([fault(1, 1)]) == "1 error"
    assert summary([fault(1, 1), fault(2, 1), warning]) == "2 errors, 1 warning"
    assert summary([warning, warning]) == "no errors, 2 warnings"


@given(st.text(), st.integers(1, 5), st.integers(1, 40), st.integers(0, 5), st.integers(0, 60), st.integers(1, 90))
def test_any_location_in_any_text_can_be_shown(
    text: str, line: int, column: int, end_line: int, end_column: int, width: int
) -> None:
    item = fault(line, column, (end_line, end_column), message=text, hint=text)
    out = render_text([item], lambda _: text, width=width)
    assert out.encode("utf-8")
    assert all(char.isprintable() or char == "\n" for char in out)
    assert 2 <= out.count("\n") <= 4
    assert render_github([item]).count("\n") == 1

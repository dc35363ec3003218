"""Folding lines for a narrow terminal."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from llm_do.ui.terminal.folding import fold_lines
from llm_do.ui.terminal.screen import hyperlink
from llm_do.ui.terminal.text_width import text_width
from tests.support.tables import each_row

WORDS = st.lists(st.text("abc.:`/漢é", min_size=1, max_size=12), min_size=1, max_size=20)


def test_lines_that_fit_stay_as_they_are() -> None:
    text = "  5 | approvals:  x\n    | ^^^^^^^^^\n"
    assert fold_lines(text, 40) == text


def test_a_hint_continues_below_its_text() -> None:
    assert fold_lines("    = the keys here are name, model", 24) == "    = the keys here are\n      name, model"


def test_links_take_no_columns() -> None:
    link = hyperlink("main.agent:3:", "/home/ann/my notes/main.agent")
    assert fold_lines(f"{link} no such file", 26) == f"{link} no such file"
    assert fold_lines(f"{link} no such file", 24) == f"{link} no such\n  file"


def test_colour_codes_take_no_columns() -> None:
    red = "\x1b[1;31merror\x1b[0m: no such file"
    assert fold_lines(red, 19) == red
    assert fold_lines(red, 18) == "\x1b[1;31merror\x1b[0m: no such\n  file"
    assert fold_lines("\x1b[34m    =\x1b[0m the keys here", 14) == "\x1b[34m    =\x1b[0m the keys\n      here"


@each_row(
    "text, columns",
    [("plain", 5), ("漢字", 4), ("e\u0301", 1), ("\u1112\u1161\u11ab", 2), ("😀", 2), ("\u2764", 1), ("", 0)],
)
def test_text_width_counts_columns_as_terminals_do(text: str, columns: int) -> None:
    assert text_width(text) == columns


def test_a_unit_stays_with_its_number() -> None:
    assert fold_lines("completed: 1 step, 10.2 s, all", 23) == "completed: 1 step,\n  10.2 s, all"


def test_columns_of_a_table_stay_apart() -> None:
    assert fold_lines("a   b  c and more", 12) == "a   b  c and\n  more"


@given(WORDS, st.integers(1, 60))
def test_folding_loses_nothing_and_only_single_words_exceed_the_width(words: list[str], columns: int) -> None:
    folded = fold_lines(" ".join(words), columns)

    assert folded.split() == words
    for line in folded.split("\n"):
        assert text_width(line) <= columns or len(re.findall(r"\S+", line)) == 1


def test_foreign_text_is_folded_without_indentation() -> None:
    assert fold_lines("Hello there, what can I do", 14, hang=0) == "Hello there,\nwhat can I do"


def test_the_branch_of_a_tree_is_never_alone_on_a_line() -> None:
    assert fold_lines("│  ├─ a_very_long_name_of_a_tool  ask", 20) == "│  ├─ a_very_long_name_of_a_tool\n  ask"

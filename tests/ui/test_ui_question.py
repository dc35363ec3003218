from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from llm_do.files.changes.file_diff import unified_diff
from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.text.sanitizer import format_arguments
from llm_do.ui.approval.choices import choice_keys, choice_lines, parse_answer, rules_text, short_choices
from llm_do.ui.approval.diff_view import diff_lines
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.question import question_of
from llm_do.ui.terminal.text_width import text_width, wrap_words
from tests.support.tables import each_row

DIFF = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n"


def request(**fields: object) -> ApprovalRequest:
    values = {"tool_name": "write_file", "agent_path": "main/writer", "args": {}, **fields}
    return ApprovalRequest("q1", "run", "call", "t1", "writer", **values)  # pyright: ignore


def ask(columns: int = 80, *, complete: bool = True, rows: int | None = None, **fields: object) -> list[str]:
    """The lines of a question."""
    question = question_of(request(**fields), Frame(columns), complete=complete)
    return question.fit(rows or 1_000_000)[0]


def test_a_question_shows_everything_known_about_the_call() -> None:
    lines = ask(
        args={"path": "notes.md", "lines": [1, 2], "text": "a\nb"},
        description="Write 3 bytes to notes.md",
        diff=DIFF,
        reason="write_file needs approval",
        rule="write_file(**)",
        number=2,
        total=3,
    )

    assert lines == [
        "╭ writer wants to call write_file" + " " * 40 + "2 of 3",
        "│ called by main",
        "│ what: Write 3 bytes to notes.md",
        "│ path: notes.md",
        "│ lines: [1,2]",
        "│ text:",
        "│ 1   a",
        "│ 2   b",
        "│ notes.md  +1 -1",
        "│ 1 - old",
        "│ 1 + new",
        "╰ why: write_file needs approval (rule write_file(**))",
    ]


def test_a_call_without_arguments_is_shown_as_such() -> None:
    assert "│ no arguments" in ask()


def test_continuation_lines_have_their_own_mark() -> None:
    lines = ask(40, args={"text": "x" * 100})

    assert lines[2:6] == ["│ text:", "│   " + "x" * 35, "│ \\ " + "x" * 35, "│ \\ " + "x" * 30]


def test_our_own_text_wraps_between_words_behind_marks() -> None:
    reason = "send needs approval by default: no rule covers it"
    lines = ask(40, agent_path="main/writer/the_chief_editor", reason=reason)

    assert lines == [
        "╭ the_chief_editor wants to call",
        "│ \\ write_file",
        "│ called by main > writer",
        "│ no arguments",
        "│ why: send needs approval by default:",
        "╰ \\ no rule covers it",
    ]


def test_many_callers_are_named_in_short_until_all_is_viewed() -> None:
    path = "main/a/b/c/writer"
    assert "│ called by main > ⋯ > c" in ask(agent_path=path, complete=False)
    assert "│ called by main > a > b > c" in ask(agent_path=path)


def test_defaults_and_what_the_diff_shows_are_left_out_and_counted() -> None:
    fields = {"args": {"path": "notes.md", "text": "new\n", "mode": 1}, "defaults": ("mode",), "in_diff": ("text",)}
    short = question_of(request(diff=DIFF, **fields), Frame())

    assert not any("mode:" in line or "text:" in line for line in short.fit(100)[0])
    assert short.omitted == ["1 default argument", "text in full"]
    assert {"│ mode: 1", "│ text:"} < set(ask(diff=DIFF, **fields))


def test_a_target_is_shown_even_if_it_is_a_default_and_stays_when_the_rest_is_cut() -> None:
    call = ToolCallInfo("write_file", {}, primary="path")
    args = {"content": "\n".join(map(str, range(90))), "path": "notes/todo.md"}
    question = question_of(request(args=args, call=call, defaults=("path",)), Frame())
    lines, hidden = question.fit(12)

    assert len(lines) == 12
    assert lines[2] == "│ path: notes/todo.md"
    assert lines[3:5] == ["│ content:", "│  1   0"]
    assert f"│ ⋯ {hidden} more lines" in lines
    assert lines[-1].startswith("╰ why:")
    assert hidden == 91 - 7
    assert question.omitted == []


def test_a_long_target_begins_in_the_head_and_is_complete_below_it() -> None:
    call = ToolCallInfo("shell", {}, primary="command")
    question = question_of(request(args={"command": "x" * 1000}, call=call), Frame(60))

    assert len(question.head) == 2 + 4 + 1
    assert sum(line.count("x") for line in question.body) == 1000


TWO_HUNKS = """\
--- notes.md
+++ notes.md
@@ -9,2 +9,3 @@
 same
-the old end
+the new end
+more
@@ -99,2 +100,1 @@
 x
--- gone
\\ No newline at end of file
"""


def test_a_diff_has_file_name_line_numbers_and_counts() -> None:
    assert diff_lines(TWO_HUNKS, Frame()) == [
        "│ notes.md  +2 -2",
        "│ ⋯",
        "│   9   same",
        "│  10 - the old end",
        "│  10 + the new end",
        "│  11 + more",
        "│ ⋯",
        "│ 100   x",
        "│ 100 - -- gone",
        "│     ⋯ no line break at the end",
    ]


def test_a_diff_in_colour_marks_what_changes_within_a_line() -> None:
    lines = diff_lines("--- a\n+++ a\n@@ -1 +1 @@\n-the old end\n+the new end\n", Frame(color=True))

    assert "\x1b[31mthe \x1b[0m\x1b[31;7mold\x1b[0m\x1b[31m end\x1b[0m" in lines[1]
    assert "\x1b[32mthe \x1b[0m\x1b[32;7mnew\x1b[0m\x1b[32m end\x1b[0m" in lines[2]


@pytest.mark.parametrize(
    "text", ["- one\n+ two", "--- a\n+++ a\n@@ -1,2 +1 @@\n-old\n+new\nand this", "--- a\n+++ a\nhello", "@@", ""]
)
def test_another_text_than_a_diff_is_shown_as_it_is(text: str) -> None:
    assert [line[4:] for line in diff_lines(text, Frame())] == text.split("\n")


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "--- c\n", "\n", "[d\n", "@@ -1 +1 @@\n", "e"]), max_size=25).map(
    "".join
)


@given(TEXTS, TEXTS)
def test_every_line_of_a_diff_is_shown_with_its_sign(before: str, after: str) -> None:
    diff = unified_diff(before, after, "x")
    if not diff:
        return
    first, *drawn = diff_lines(diff, Frame(lines=False))
    changes = [
        line for line in diff.removesuffix("\n").split("\n")[2:] if not re.match(r"@@ -[\d,]+ \+[\d,]+ @@$", line)
    ]

    assert first.startswith("| x  +")
    shown = [re.fullmatch(r"\| *\d+(?: ([ +-])(?: (.*))?)?", line) for line in drawn]
    assert [f"{found[1] or ' '}{found[2] or ''}" for found in shown if found] == [
        line for line in changes if not line.startswith("\\")
    ]


def test_a_diff_that_leaves_lines_out_says_so() -> None:
    diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n-old\n[5 more lines of this diff are not shown]\n"

    assert diff_lines(diff, Frame())[-1] == "│   ⋯ 5 more lines of this diff are not shown"


def test_without_unicode_and_colours_a_question_is_ascii() -> None:
    frame = Frame(60, lines=False)
    call = ToolCallInfo("write_file", {}, primary="path")
    text = question_of(request(args={"path": "a" * 400, "text": "a\nb"}, diff=TWO_HUNKS, call=call), frame).text(12)

    assert text.isascii()
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith("+ writer wants")


@given(st.lists(st.text(alphabet="ab日", min_size=1, max_size=12)), st.integers(2, 30))
def test_wrapping_breaks_only_words_that_do_not_fit_and_loses_none(words: list[str], columns: int) -> None:
    pieces = list(wrap_words(" ".join(words), columns))

    def fits(word: str) -> bool:
        return text_width(word) <= columns

    assert "".join("".join(pieces).split()) == "".join(words)
    assert all(map(fits, pieces))
    assert {word for word in words if fits(word)} <= set(" ".join(pieces).split())


@given(st.text(max_size=300), st.text(max_size=60), st.integers(20, 200))
def test_no_text_of_a_model_is_at_the_start_of_a_line_or_acts_on_the_terminal(
    value: str, name: str, columns: int
) -> None:
    lines = ask(columns, args={name: value, "tail": 1}, diff=value, description=value, reason=value)

    assert lines[0].startswith("╭ writer wants")
    assert all(line.startswith("│") for line in lines[1:-1])
    assert lines[-1].startswith("╰")
    assert all(char.isprintable() for line in lines for char in line)


@given(st.text(alphabet="ab日 \n\\", min_size=1, max_size=300), st.integers(23, 90))
def test_a_value_is_shown_in_full(value: str, columns: int) -> None:
    [(_, shown)] = format_arguments({"text": value})
    drawn = Frame(columns).named("text", shown)

    if len(drawn) == 1:
        assert drawn == [f"│ text: {shown}".rstrip()]
        return
    lines = shown.split("\n")
    gutter = len(str(len(lines))) + 1 if len(lines) > 1 else 0
    found: list[str] = []
    for row in drawn[1:]:
        sign = row[2 + gutter : 4 + gutter]
        if sign.rstrip() == "\\":  # a row may end with its sign
            found[-1] += row[4 + gutter :]
        else:
            found.append(row[4 + gutter :])
    assert ["".join(line.split()) for line in found] == ["".join(line.split()) for line in lines]


@given(st.text(alphabet="日本e\u0301 abc\n", min_size=1, max_size=200), st.integers(30, 90), st.integers(5, 40))
def test_no_line_is_wider_than_the_terminal_and_no_question_higher(value: str, columns: int, rows: int) -> None:
    question = question_of(request(args={"text": value}, diff=DIFF, total=2), Frame(columns))
    lines, hidden = question.fit(rows)
    assert len(lines) <= max(rows, len(question.head) + len(question.foot) + 3)
    assert hidden == 0 or len(lines) + hidden == len(question.head) + len(question.body) + len(question.foot) + 1
    for line in lines:
        wide = sum(
            0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
            for char in line
        )
        assert wide < columns


@each_row(
    "text, key",
    [
        ("y", "once"),
        (" YES ", "once"),
        ("s", "session"),
        ("e", "all"),
        ("all", "all"),
        ("n", "deny"),
        ("d", "note"),
        ("a", "abort"),
        ("v", "view"),
    ]
    + [(text, None) for text in ("", "yy", "o", "1", "y n", "\x1b[A")],
)
def test_only_listed_keys_are_answers(text: str, key: str | None) -> None:
    assert parse_answer(text) == key


RULES = ["main:send(to=ann)", "main:send"]


def test_each_choice_says_what_it_does_and_a_rule_is_shown_before_it_is_chosen() -> None:
    assert choice_lines(Frame(), choice_keys(), rules=RULES, hidden="7 more lines") == [
        "  y  yes, this once",
        "  s  yes, and exactly this call again in this session",
        "  p  yes, and in this session every call that this rule allows:",
        "     main:send(to=ann)",
        "  w  yes, and always in this project; keeps that rule, or this call, for you",
        "  n  no    d  no, with a note for the model    a  abort the run",
        "  v  view all of it: 7 more lines",
    ]
    assert choice_lines(Frame(), ["w"], rules=RULES)[-1] == "     main:send(to=ann)"
    assert "a rule of yours allows" in choice_lines(Frame(), ["p"])[0]


def test_choices_fit_narrow_terminals_and_omit_answers_that_cannot_be_saved() -> None:
    for columns in (40, 60):
        frame = Frame(columns)
        every = choice_lines(frame, choice_keys(identical=5), rules=["main:" + "x" * 300], identical=5, hidden="more")
        assert all(len(line) < columns for line in [*every, *short_choices(frame, choice_keys())])
        assert sum("x" in line for line in every) == 3  # two of the rule, and `exactly`
    assert "always" not in " ".join(choice_lines(Frame(), choice_keys(("once", "deny", "abort"))))


def test_identical_calls_are_counted_and_can_all_be_allowed() -> None:
    assert "│ 5 identical calls" in ask(identical=5)
    assert "  e  yes, all 5 identical calls" in choice_lines(Frame(), choice_keys(identical=5), identical=5)
    assert "e" not in choice_keys()


def test_proposed_rules_are_numbered_and_shown_in_full() -> None:
    shown = rules_text(["main:send(to=ann)", "main:" + "x" * 100], 40, exact=True)

    assert shown.startswith("  0 exactly this call\n  1 main:send(to=ann)\n  2 main:")
    assert shown.count("x") == 101
    assert [line.count("x") for line in shown.split("\n") if "xx" in line] == [30, 33, 33, 4]  # lines are full
    assert all(len(line) < 40 for line in shown.split("\n")[:-1])

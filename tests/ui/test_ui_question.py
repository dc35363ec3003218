from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.text.sanitizer import format_arguments
from llm_do.ui.approval.question import choices_text, help_text, parse_answer, question_text, rules_text
from llm_do.ui.terminal.text_width import text_width, wrap_words

DIFF = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n"


def request(**fields: object) -> ApprovalRequest:
    values = {"tool_name": "write_file", "agent_path": "main/writer", "args": {}, **fields}
    return ApprovalRequest("q1", "run", "call", "t1", "writer", **values)  # pyright: ignore


def test_a_question_shows_everything_known_about_the_call() -> None:
    text = question_text(
        request(
            args={"path": "notes.md", "lines": [1, 2], "text": "a\nb"},
            description="Write 3 bytes to notes.md",
            diff=DIFF,
            reason="write_file needs approval",
            rule="write_file(**)",
        )
    )

    assert text.splitlines() == [
        "main/writer wants to call write_file",
        "  what: Write 3 bytes to notes.md",
        "  path: notes.md",
        "  lines: [1,2]",
        "  text:",
        "    | a",
        "    | b",
        "  changes:",
        "    | --- a/notes.md",
        "    | +++ b/notes.md",
        "    | @@ -1 +1 @@",
        "    | -old",
        "    | +new",
        "  reason: write_file needs approval (rule write_file(**))",
    ]


def test_a_call_without_arguments_is_shown_as_such() -> None:
    assert "  (no arguments)\n" in question_text(request())


def test_continuation_lines_have_their_own_mark() -> None:
    lines = question_text(request(args={"text": "x" * 100}), columns=40).splitlines()

    assert lines[1:5] == ["  text:", "    | " + "x" * 33, "    \\ " + "x" * 33, "    \\ " + "x" * 33]


def test_our_own_text_wraps_between_words_behind_marks() -> None:
    reason = "send needs approval by default: no rule covers it"
    lines = question_text(request(agent_path="main/writer/editor", reason=reason), columns=40).splitlines()

    assert lines == [
        "main/writer/editor wants to call",
        "    \\ write_file",
        "  (no arguments)",
        "  reason:",
        "    | send needs approval by default:",
        "    \\ no rule covers it",
    ]


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab日", min_size=1, max_size=12)), st.integers(2, 30))
def test_wrapping_breaks_only_words_that_do_not_fit_and_loses_none(words: list[str], columns: int) -> None:
    pieces = list(wrap_words(" ".join(words), columns))

    def fits(word: str) -> bool:
        return text_width(word) <= columns

    assert "".join("".join(pieces).split()) == "".join(words)
    assert all(map(fits, pieces))
    assert {word for word in words if fits(word)} <= set(" ".join(pieces).split())


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=60), st.integers(20, 200))
def test_arguments_are_shown_in_full_and_never_at_the_start_of_a_line(value: str, name: str, columns: int) -> None:
    args = {name: value, "tail": 1}

    text = question_text(request(args=args, diff=value), columns=columns)

    lines = text.splitlines()
    assert lines[0].startswith("main/writer wants")
    assert all(line.startswith("  ") for line in lines[1:])
    assert all(char.isprintable() or char == "\n" for char in text)
    shown = "".join(line[6:] if line.startswith(("    | ", "    \\ ")) else line for line in lines)
    for argument, formatted in format_arguments(args):
        assert argument in shown
        assert formatted.replace("\n", "") in shown


@settings(deadline=None)
@given(st.text(alphabet="日本e\u0301 abc", min_size=1, max_size=200), st.integers(30, 90))
def test_no_line_is_wider_than_the_terminal(value: str, columns: int) -> None:
    for line in question_text(request(args={"text": value}), columns=columns).splitlines():
        wide = sum(
            0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
            for char in line
        )
        assert wide < columns


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("y", "once"),
        (" YES ", "once"),
        ("s", "session"),
        ("e", "all"),
        ("all", "all"),
        ("n", "deny"),
        ("d", "note"),
        ("a", "abort"),
    ]
    + [(text, None) for text in ("", "yy", "o", "1", "y n", "\x1b[A")],
)
def test_only_listed_keys_are_answers(text: str, key: str | None) -> None:
    assert parse_answer(text) == key


def test_choices_fit_narrow_terminals_and_omit_answers_that_cannot_be_saved() -> None:
    assert all(len(line) < 40 for line in choices_text(40).split("\n"))
    assert choices_text(40).endswith("a abort the run: ")
    assert "always" not in choices_text(80, ("once", "deny", "abort"))


def test_identical_calls_are_counted_and_can_all_be_allowed() -> None:
    assert "  5 identical calls\n" in question_text(request(identical=5))
    assert " e all 5," in choices_text(200, identical=5)
    assert " e all" not in choices_text(200)


def test_the_help_explains_how_the_lasting_answers_differ() -> None:
    assert [line[2] for line in help_text().splitlines()] == ["s", "p", "w"]
    assert all(len(line) < 40 for line in help_text(40).splitlines())


def test_proposed_rules_are_numbered_and_shown_in_full() -> None:
    shown = rules_text(["main:send(to=ann)", "main:" + "x" * 100], 40, exact=True)

    assert shown.startswith("  0 exactly this call\n  1 main:send(to=ann)\n  2 main:")
    assert shown.count("x") == 101
    assert all(len(line) < 40 for line in shown.split("\n")[:-1])

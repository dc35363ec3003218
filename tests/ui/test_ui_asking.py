"""Input at the terminal answers the open question and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, cast

import pytest

from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.ui.approval.asker import Asker


class Typist:
    """A terminal where these lines are typed, each some time after a read began."""

    columns = 80
    rows = 40
    edits = False

    def __init__(self, lines: Sequence[str], *, is_plain: bool = True) -> None:
        self.lines = list(lines)
        self.is_plain = is_plain
        self.seen: list[str] = []
        self.waiting = 0

    def write(self, text: str) -> None:
        assert self.waiting == 0, "another reader waits for a line"
        self.seen.append(text)

    async def read_line(self) -> str:
        self.waiting += 1
        for _ in range(5):
            await asyncio.sleep(0)
        self.waiting -= 1
        return self.lines.pop(0)

    def unmute(self) -> bool:
        return False

    def forget_typed(self) -> None: ...

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def hold(self) -> None: ...

    def release(self) -> None: ...


def ask_all(
    lines: Sequence[str], *questions: ApprovalRequest | UserQuestion, is_plain: bool = True
) -> tuple[list[Any], str]:
    """Ask questions concurrently; return the answers and the terminal's output."""
    typist = Typist(lines, is_plain=is_plain)
    asker = Asker(cast("Any", typist), cast("Any", typist))

    async def scenario() -> list[Any]:
        return await asyncio.gather(
            *(asker(one) if isinstance(one, ApprovalRequest) else asker.ask_user(one) for one in questions)
        )

    return asyncio.run(scenario()), "".join(typist.seen)


REQUEST = ApprovalRequest("q1", "run", "call", "t1", "main", "main", "wipe", {})


def test_an_agents_question_waits_for_an_open_approval() -> None:
    (decision, reply), shown = ask_all(["n", "y"], REQUEST, UserQuestion("Is it sunny?", agent_path="main"))
    assert (decision.answer, reply) == ("deny", "y")
    assert shown.index("wants to call wipe") < shown.index("allow?") < shown.index("Is it sunny?")


def test_an_approval_waits_for_an_agents_open_question() -> None:
    (reply, decision), shown = ask_all(["y", "n"], UserQuestion("Is it sunny?", agent_path="main"), REQUEST)
    assert (decision.answer, reply) == ("deny", "y")
    assert shown.index("Is it sunny?") < shown.index("answer:") < shown.index("wants to call wipe")


LONG = ApprovalRequest(
    "q1", "run", "call", "t1", "writer", "main/writer", "write_file",
    {"path": "notes/long.md", "content": "\n".join(f"line {number}" for number in range(3000))},
    call=ToolCallInfo("write_file", {}, primary="path"),
)  # fmt: skip


def test_a_long_question_fits_the_terminal_and_keeps_its_head_and_both_ends_in_sight() -> None:
    [decision], shown = ask_all(["n"], LONG)

    assert decision.answer == "deny"
    lines = shown.split("allow? ")[0].splitlines()
    assert len(lines) < Typist.rows
    assert lines[:4] == [
        "╭ writer wants to call write_file",
        "│ called by main",
        "│ path: notes/long.md",
        "│ content:",
    ]
    assert "│ 3000   line 2999" in lines
    assert "  v  view all of it: 2,974 more lines" in lines


@pytest.mark.parametrize(("typed", "answer"), [("y", "once"), ("s", "session")])
def test_a_question_that_is_not_shown_in_full_is_allowed_by_the_same_key_twice(typed: str, answer: str) -> None:
    [decision], shown = ask_all(["y" if typed == "s" else "s", typed, "", typed], LONG)

    assert decision.answer == answer
    assert shown.count("2,974 more lines not shown yet: v shows all, ") == 2
    assert f"{typed} again allows the call" in shown


def test_all_of_a_long_question_can_be_viewed_page_by_page_below_its_head() -> None:
    [decision], shown = ask_all(["v", *[""] * 89, "y"], LONG)

    assert decision.answer == "once"
    assert all(f"   line {number}\n" in shown for number in range(3000))
    assert shown.count("│ path: notes/long.md\n") == 1 + 89 + 1
    assert shown.count("Enter shows more") == 88
    assert "lines 2,993 to 3,002 of 3,002; Enter goes back to the question, b a page, n\n  denies: " in shown
    assert shown.endswith("  v  view all of it: 2,974 more lines\nallow? ")
    assert "not shown yet" not in shown


def test_the_rest_can_be_shown_at_once_and_a_page_again() -> None:
    [decision], shown = ask_all(["v", "", "b", "r", "y"], LONG)

    assert decision.answer == "once"
    assert shown.count("lines 1 to 34 of 3,002;") == 2
    assert shown.count("│ 3000   line 2999\n") == 3


def test_a_key_that_means_nothing_here_is_answered_below_the_page() -> None:
    [decision], shown = ask_all(["v", "zz\x1b[2J", "q", "n"], LONG)

    assert decision.answer == "deny"
    assert shown.count("isn't one of these keys\nlines 1 to 33 of 3,002; Enter shows more") == 1
    assert "\x1b[2j" not in shown.lower()


def test_looking_at_a_part_is_not_looking_at_all() -> None:
    [decision], shown = ask_all(["v", "q", "y", "n"], LONG)

    assert decision.answer == "deny"
    assert "not shown yet" in shown


def test_a_terminal_with_abilities_shows_pages_on_its_other_screen() -> None:
    _, shown = ask_all(["v", "", "q", "n"], LONG, is_plain=False)

    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1
    assert shown.count("\x1b[H\x1b[2J") == 2
    assert shown.endswith("\x1b[?1049lallow? ")


@pytest.mark.parametrize(("typed", "answer"), [("n", "deny"), ("a", "abort")])
def test_a_long_question_can_be_denied_on_any_page(typed: str, answer: str) -> None:
    [decision], shown = ask_all(["v", "", typed], LONG)

    assert decision.answer == answer
    assert shown.count("allow?") == 1


def test_a_low_or_narrow_terminal_only_names_the_choices_until_they_are_asked_for() -> None:
    class Low(Typist):
        columns = 40
        rows = 12

    typist = Low(["?", "n"])
    asker = Asker(cast("Any", typist), cast("Any", typist))
    asyncio.run(asker(REQUEST))
    before, after, _ = "".join(typist.seen).split("allow? ")

    assert before.splitlines()[-4:] == [
        "y once, s this session,",
        "  p session by rule, w always, n deny,",
        "  d deny with a note, a abort the run,",
        "  ? explain",
    ]
    assert after.startswith("  y  yes, this once\n")


def test_a_lasting_answer_says_what_it_allows() -> None:
    decisions, shown = ask_all(["s", "w", "0"], REQUEST, REQUEST)

    assert [each.answer for each in decisions] == ["session", "always"]
    assert "allowed in this session: exactly this call\n" in shown
    assert "allowed always, in this project: exactly this call\n" in shown


def test_an_answer_that_is_not_accepted_is_none() -> None:
    request = replace(REQUEST, answers=("once", "deny"))
    [decision], shown = ask_all(["s", "a", "v", "q", "y"], request)

    assert decision.answer == "once"
    assert "this answer can't be remembered\n" in shown

"""Input at the terminal answers the open question and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.ui.approval.asker import Asker


class Typist:
    """A terminal where these lines are typed, each some time after a read began."""

    columns = 80
    rows = 40
    edits = False

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
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

    def hold(self) -> None: ...

    def release(self) -> None: ...


def ask_all(lines: Sequence[str], *questions: ApprovalRequest | UserQuestion) -> tuple[list[Any], str]:
    """Ask questions concurrently; return the answers and the terminal's output."""
    typist = Typist(lines)
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


def test_a_long_question_is_paged_and_ends_with_its_head() -> None:
    [decision], shown = ask_all([""] * 88 + ["y"], LONG)

    assert decision.answer == "once"
    assert all(f"| line {number}\n" in shown for number in range(3000))
    end = shown[-400:]
    assert "main/writer wants to call write_file\n  path: notes/long.md\nallow?" in end
    assert shown.count("Enter shows more") == 88


def test_the_rest_can_be_shown_at_once_and_enter_never_allows() -> None:
    [decision], shown = ask_all(["y", "r", "", "n"], LONG)

    assert decision.answer == "deny"
    assert shown.count("Enter shows more") == 2
    assert "| line 2999\n" in shown
    assert shown.count("allow?") == 2


def test_a_long_question_can_be_denied_on_any_page() -> None:
    [decision], shown = ask_all(["", "n"], LONG)

    assert decision.answer == "deny"
    assert "allow?" not in shown


def test_a_question_that_fits_is_shown_as_one() -> None:
    _, shown = ask_all(["n"], REQUEST)

    assert "Enter shows more" not in shown
    assert shown.count("wants to call wipe") == 1

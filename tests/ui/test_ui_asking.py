"""Input at the terminal answers the open question and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.ui.approval.asker import Asker


class Typist:
    """A terminal where these lines are typed, each some time after a read began."""

    columns = 80
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

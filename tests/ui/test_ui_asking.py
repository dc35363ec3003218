"""What a person types at the terminal answers the question that stands there, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.ui.approval.asker import Asker


class Typist:
    """A terminal at which these lines are typed, each some time after it was waited for."""

    columns = 80
    edits = False

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.seen: list[str] = []
        self.waiting = 0

    def write(self, text: str) -> None:
        assert self.waiting == 0, "somebody else waits for a line"
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


def asked(lines: Sequence[str], *questions: ApprovalRequest | UserQuestion) -> tuple[list[Any], str]:
    """Put questions at the same time; the answers, and what stood on the terminal."""
    typist = Typist(lines)
    asker = Asker(cast("Any", typist), cast("Any", typist))

    async def scenario() -> list[Any]:
        return await asyncio.gather(
            *(asker(one) if isinstance(one, ApprovalRequest) else asker.ask_user(one) for one in questions)
        )

    return asyncio.run(scenario()), "".join(typist.seen)


REQUEST = ApprovalRequest("q1", "run", "call", "t1", "main", "main", "wipe", {})


def test_an_agents_question_waits_for_the_one_about_a_call() -> None:
    (decision, said), shown = asked(["n", "y"], REQUEST, UserQuestion("Is it sunny?", agent_path="main"))
    assert (decision.answer, said) == ("deny", "y")
    assert shown.index("wants to call wipe") < shown.index("allow?") < shown.index("Is it sunny?")


def test_a_question_about_a_call_waits_for_an_agents() -> None:
    (said, decision), shown = asked(["y", "n"], UserQuestion("Is it sunny?", agent_path="main"), REQUEST)
    assert (decision.answer, said) == ("deny", "y")
    assert shown.index("Is it sunny?") < shown.index("answer:") < shown.index("wants to call wipe")

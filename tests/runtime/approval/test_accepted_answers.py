"""An application says which answers it takes, and whether any may last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do import ApprovalDecision, RunApprovalPolicy, UsageError
from tests.runtime.approval.letters import RAN, sender
from tests.support.runs import Answers, carry_out, runtime_of
from tests.support.scripted import call


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@pytest.mark.parametrize("answer", ["session", "always"])
@pytest.mark.parametrize("limits", [{"remember": False}, {"answers": {"once", "deny"}}])
def test_an_answer_that_is_not_accepted_denies_and_is_not_kept(
    tmp_path: Path, limits: dict[str, Any], answer: str
) -> None:
    person = Answers([ApprovalDecision(answer, pattern="send")])  # type: ignore[arg-type]
    runtime = runtime_of([sender()], root=tmp_path, approvals=RunApprovalPolicy("prompt", person, **limits))
    results = [carry_out(runtime), carry_out(runtime)]

    assert [result.status for result in results] == ["denied", "denied"]
    assert f"the answer '{answer}', which isn't accepted here; answers are once" in results[0].denials[0].reason
    assert (RAN, len(person.asked), list(tmp_path.iterdir())) == ([], 2, [])


def test_a_request_lists_the_answers_that_are_accepted() -> None:
    person = Answers(["once"])
    policy = RunApprovalPolicy("prompt", person, answers=["deny", "all", "once", "session"], remember=False)
    carry_out(runtime_of([sender(call("send", to="ann"), call("send", to="ann"))], approvals=policy))

    assert [request.answers for request in person.asked] == [("once", "all", "deny"), ("once", "deny")]


@pytest.mark.parametrize("answers", ["once", ["once", "yes"]])
def test_answers_that_do_not_exist_are_an_error(answers: Any) -> None:
    with pytest.raises(UsageError, match="answers are once, all, session"):
        RunApprovalPolicy(answers=answers)

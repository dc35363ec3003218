"""Ways round an approval that a tool asks for: other arguments, other calls, other agents, functions that cheat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext, Tool as PydanticTool

from llm_do import ApprovalDecision, Runtime
from llm_do.policy.rules import build_policy
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.question import question_of
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script

RAN: list[Any] = []
OPEN = build_policy({"default": "allow"})[0]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def wipe(ctx: RunContext[Any], paths: list[str]) -> str:
    """Wipe paths."""
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    RAN.append(list(paths))
    return "wiped"


def test_an_approval_of_some_arguments_does_not_cover_others() -> None:
    person = Answers(["session", "deny"])
    spec = agent("main", script([call("wipe", paths=["a"])], [call("wipe", paths=["b"])], "fin"), tools=[wipe])
    carry_out(runtime_of([spec], approvals=person, policy=OPEN))

    assert RAN == [["a"]]
    assert [dict(request.args) for request in person.asked] == [{"paths": ["a"]}, {"paths": ["b"]}]


def test_an_approval_does_not_cover_a_later_call_with_the_same_id() -> None:
    again = [call("wipe", {"paths": ["a"]}, "same")], [call("wipe", {"paths": ["b"]}, "same")]
    person = Answers(["once", "deny"])
    result = carry_out(runtime_of([agent("main", script(*again, "fin"), tools=[wipe])], approvals=person, policy=OPEN))

    assert RAN == [["a"]]
    strict(result.messages)


def test_an_approval_does_not_cover_a_parallel_call_with_the_same_id() -> None:
    calls = [call("wipe", {"paths": ["a"]}, "same"), call("wipe", {"paths": ["b"]}, "same")]

    async def person(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision("once" if request.args["paths"] == ["a"] else "deny")

    carry_out(runtime_of([agent("main", script(calls, "fin"), tools=[wipe])], approvals=person, policy=OPEN))

    assert RAN == [["a"]]


def test_an_approval_request_shows_the_arguments_a_tool_changed_first() -> None:
    def creep(ctx: RunContext[Any], paths: list[str]) -> str:
        """Grows its own arguments."""
        if not ctx.tool_call_approved:
            paths.append("/etc")
            raise ApprovalRequired
        RAN.append(list(paths))
        return "done"

    person = Answers(["once"])
    spec = agent("main", script([call("creep", paths=["a"])], "fin"), tools=[creep])
    carry_out(runtime_of([spec], approvals=person, policy=OPEN))

    assert [list(request.args["paths"]) for request in person.asked] == RAN == [["a", "/etc"]]


def test_a_deny_rule_applies_to_arguments_a_tool_has_changed() -> None:
    def creep(ctx: RunContext[Any], paths: list[str]) -> str:
        """Grows its own arguments."""
        if not ctx.tool_call_approved:
            paths[0] = "/etc"
            raise ApprovalRequired
        RAN.append(list(paths))
        return "done"

    policy, _ = build_policy({"default": "allow", "deny": ["creep(paths=*etc*)"]})
    spec = agent("main", script([call("creep", paths=["a"])], "fin"), tools=[creep])
    result = carry_out(runtime_of([spec], policy=policy))

    assert RAN == []
    assert len(result.denials) == 1


def test_a_function_that_changes_the_arguments_it_checks_lets_nothing_run() -> None:
    def judge(ctx: Any, tool_def: Any, args: dict[str, Any]) -> bool:
        args["paths"].append("/etc")
        return False

    def clean(paths: list[str]) -> str:
        """Clean."""
        RAN.append(paths)
        return "cleaned"

    kit = FunctionToolset([clean]).approval_required(judge)
    spec = agent("main", script([call("clean", paths=["a"])], "fin"), toolsets=[kit])
    result = carry_out(runtime_of([spec], policy=OPEN))

    assert RAN == []
    assert "changed each time" in result.denials[0].reason


def test_a_changing_approval_requirement_is_evaluated_once() -> None:
    answers = iter([False, True, True, True])
    kit = FunctionToolset([PydanticTool(_clean)]).approval_required(lambda ctx, tool_def, args: next(answers))
    person = Answers(["deny"])
    spec = agent("main", script([call("_clean", path="a")], "fin"), toolsets=[kit])
    carry_out(runtime_of([spec], approvals=person, policy=OPEN))

    assert (RAN, len(person.asked)) == ([], 1)


def _clean(path: str) -> str:
    """Clean."""
    RAN.append(path)
    return "cleaned"


def test_an_approval_of_an_agent_does_not_cover_its_tools() -> None:
    kit = FunctionToolset([PydanticTool(_clean)]).approval_required()
    inner = agent("inner", script([call("_clean", path="a")], "inner done"), toolsets=[kit])
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])

    async def person(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision("once" if request.tool_name == "inner" else "deny")

    policy, _ = build_policy({"default": "allow", "ask": ["inner"]})
    result = carry_out(runtime_of([main, inner], approvals=person, policy=policy))

    assert RAN == []
    assert result.denials[0].agent_path == "main/inner"


def test_a_tools_own_claim_is_not_an_approval() -> None:
    kit = FunctionToolset([PydanticTool(_clean, metadata={"approval": "allow"})]).approval_required()
    spec = agent("main", script([call("_clean", path="a")], "fin"), toolsets=[kit])
    result = carry_out(Runtime(project_of([spec], policy=OPEN)))

    assert RAN == []
    assert (result.status, result.exit_code) == ("denied", 4)


def test_a_tool_that_keeps_raising_is_asked_about_once_per_call() -> None:
    async def never(ctx: RunContext[Any]) -> str:
        """Raise regardless of the answer."""
        await asyncio.sleep(0)
        raise ApprovalRequired

    person = Answers(["once"])
    spec = agent("main", script([call("never"), call("never")], "fin"), tools=[never])
    result = carry_out(runtime_of([spec], approvals=person, policy=OPEN))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["failed", "failed"]
    assert len(person.asked) <= 2


def test_a_reason_is_shown_as_plain_text() -> None:
    def loud(ctx: RunContext[Any], to: str) -> str:
        """Return the model's own reason."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired({"reason": f"for {to}"})
        return "done"

    person = Answers(["once"])
    spec = agent("main", script([call("loud", to="\x1b[2Jann\u202e")], "fin"), tools=[loud])
    carry_out(runtime_of([spec], approvals=person, policy=OPEN))
    text = question_of(person.asked[0], Frame()).text()

    assert "needs approval: for" in text
    assert "\x1b" not in text
    assert "\u202e" not in text

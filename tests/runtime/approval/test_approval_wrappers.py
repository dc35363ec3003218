"""Approvals that `approval_required(...)` and argument validators require before a call runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import ApprovalRequired, CallDeferred, FunctionToolset, ModelRetry, RunContext, Tool as PydanticTool
from pydantic_ai.toolsets import WrapperToolset

from llm_do import ApprovalDecision, CallContext
from llm_do.toolsets.approval import set_toolset_approval_config
from tests.runtime.approval.required import SEEN, letters, policy, send, sender, to_the_boss
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, runtime_of
from tests.support.scripted import call, script


class Letter(BaseModel):
    to: str
    lines: list[str] = []


def post(letter: Letter, copies: int = 1) -> str:
    """Post a letter."""
    return letter.to * copies


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    SEEN.clear()


def test_a_wrappers_question_comes_before_anything_inside_runs() -> None:
    order: list[str] = []

    class Loud(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            order.append("called")
            return await super().call_tool(name, tool_args, ctx, tool)

    class Person:
        async def __call__(self, request: Any) -> ApprovalDecision:
            order.append("asked")
            return ApprovalDecision("once")

    kit = Loud(letters()).approval_required(to_the_boss)
    carry_out(runtime_of([sender(toolsets=[kit])], approvals=Person(), policy=policy()))

    assert order == ["asked", "called"]


def test_a_wrapper_that_returns_a_result_itself_is_respected() -> None:
    class Answering(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            try:
                return await super().call_tool(name, tool_args, ctx, tool)
            except ApprovalRequired:
                return "not today"

    kit = Answering(letters().approval_required())
    person = Answers(["once"])
    result = carry_out(runtime_of([sender(toolsets=[kit])], approvals=person, policy=policy()))

    assert results_of(result.messages)[0][2] == "not today"
    assert person.asked == []


def test_a_wrappers_function_gets_the_call_as_pydantic_ai_gives_it() -> None:
    seen: list[Any] = []

    def function(ctx: RunContext[CallContext], tool_def: Any, args: dict[str, Any]) -> bool:
        seen.append((ctx.deps.path, ctx.tool_name, tool_def.name, args))
        return True

    kit = FunctionToolset([post]).approval_required(function).prefixed("x")
    spec = agent("main", script([call("x_post", letter={"to": "ann"})], "fin"), toolsets=[kit])
    carry_out(runtime_of([spec], approvals=Answers(["once"]), policy=policy()))

    assert seen[0][:3] == ("main", "post", "post")
    assert seen[0][3] == {"letter": Letter(to="ann"), "copies": 1}


def test_a_wrapper_whose_function_fails_lets_nothing_run() -> None:
    kit = letters().approval_required(lambda ctx, tool_def, args: args["nothing"])
    result = carry_out(runtime_of([sender(toolsets=[kit])], policy=policy()))

    assert SEEN == []
    assert "failed to judge the call" in result.denials[0].reason


def test_an_async_function_always_asks_as_in_pydantic_ai() -> None:
    async def function(ctx: Any, tool_def: Any, args: Any) -> bool:
        return False

    person = Answers(["once"])
    kit = letters().approval_required(function)  # type: ignore[arg-type]
    carry_out(runtime_of([sender("ann", toolsets=[kit])], approvals=person, policy=policy()))

    assert len(person.asked) == 1
    assert SEEN == [("ann", True)]


def test_a_validator_that_defers_is_a_refused_call() -> None:
    def defers(ctx: Any, to: str) -> None:
        raise CallDeferred

    spec = sender(tools=[PydanticTool(send, args_validator=defers)])
    result = carry_out(runtime_of([spec], policy=policy()))

    assert SEEN == []
    assert "CallDeferred" in results_of(result.messages)[0][2]
    assert result.status == "completed"


def test_a_validators_other_checks_run_after_the_approval() -> None:
    async def strict_one(ctx: RunContext[Any], to: str) -> None:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        if to == "boss":
            raise ModelRetry("not to the boss")

    spec = agent(
        "main",
        script([call("send", to="boss"), call("send", to="ann")], "fin"),
        tools=[PydanticTool(send, args_validator=strict_one)],
    )
    person = Answers(["once"])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert SEEN == [("ann", True)]
    assert len(person.asked) == 2
    assert [(outcome, text) for _, outcome, text in results_of(result.messages)] == [
        ("failed", "not to the boss"),
        ("success", "sent to ann"),
    ]


def test_a_pre_approval_from_python_applies_inside_the_toolsets_wrappers() -> None:
    kit = letters()
    set_toolset_approval_config(kit, {"send": {"blocked": True}})
    spec = sender(name="x_send", toolsets=[kit.prefixed("x")])
    carry_out(runtime_of([spec], policy=policy()))
    assert SEEN == []

    class Asking(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> bool:
            return name == "send" and args["to"] == "boss"

    person = Answers(["deny"])
    spec = sender(name="x_send", toolsets=[Asking([send]).prefixed("x")])
    carry_out(runtime_of([spec], approvals=person, policy=policy()))
    assert (SEEN, len(person.asked)) == ([], 1)

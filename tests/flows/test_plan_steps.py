"""Plans whose members are functions, and a thread's state that others write into too."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from llm_do import CallContext, RunError
from llm_do.flows import FlowSpec
from tests.flows.flow_runs import finish, flow_runtime, run_flow, saying, text_of


def plan_of(executor: Any, planner: Any = None, synthesiser: Any = None) -> FlowSpec:
    members = {
        "planner": planner or saying("planner", "- read\n- write"),
        "executor": executor,
        "synthesiser": synthesiser or saying("synthesiser", "the answer"),
    }
    return FlowSpec("work", mode="plan", agents=tuple(members), members=members)


def test_functions_can_be_members_whatever_their_argument_is_called() -> None:
    seen: list[str] = []

    def listed(request: str) -> list[str]:
        return [f"read {request}", "write"]

    def execute(text: str) -> str:
        seen.append(text.rpartition("\n")[2])
        return f"result {len(seen)}"

    def join(report: str, /) -> str:
        return report.rpartition("\n")[2]

    assert text_of(run_flow(plan_of(execute, listed, join), "tea")) == "result 2"
    assert seen == ["read tea", "write"]


def test_a_function_that_raises_is_reported_with_its_line_and_its_task_fails() -> None:
    state: dict[str, Any] = {}

    async def execute(input: str, ctx: CallContext) -> str:
        state.update(plans=ctx.thread.state["plans"])
        raise KeyError("gone")

    result = run_flow(plan_of(execute))

    assert (result.status, str(result.error)) == ("failed", "executor raised KeyError: 'gone'")
    assert result.error.file == "test_plan_steps.py"  # type: ignore[union-attr]
    assert [task["status"] for task in state["plans"]["work"]["tasks"]] == ["failed", "open"]


def test_a_plan_survives_a_tool_replacing_the_threads_state() -> None:
    states: list[Any] = []

    async def execute(input: str, ctx: CallContext) -> str:
        states.append(copy.deepcopy(ctx.thread.state))
        ctx.thread.state = {"mine": len(states)}
        return "done"

    assert text_of(run_flow(plan_of(execute))) == "the answer"
    assert [task["status"] for task in states[1]["plans"]["work"]["tasks"]] == ["done", "running"]
    assert states[1]["mine"] == 1


@pytest.mark.parametrize("left", [{"request": "go"}, {"request": "go", "tasks": [{"task": 5}]}, "text", None])
def test_an_invalid_stored_plan_is_replaced(left: Any) -> None:
    async def begin(input: Any, ctx: CallContext) -> Any:
        ctx.thread.state = {"plans": {"work": left}}
        return await ctx.call("work", "go")

    runtime = flow_runtime(plan_of(saying("executor", "done")), entry=begin)

    assert text_of(finish(runtime)) == "the answer"


@pytest.mark.parametrize(("state", "message"), [({"plans": ["a"]}, "under `plans`"), (["a"], "isn't an object")])
def test_a_state_that_cannot_hold_a_plan_ends_the_run_with_a_reason(state: Any, message: str) -> None:
    async def begin(input: Any, ctx: CallContext) -> Any:
        ctx.thread.state = state
        return await ctx.call("work", "go")

    result = finish(flow_runtime(plan_of(saying("executor", "done")), entry=begin))

    assert isinstance(result.error, RunError)
    assert message in result.error.message
    assert result.steps == 0

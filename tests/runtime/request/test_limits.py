"""Limits on steps, loops, depth and time. Each raises a typed error with a history the next run accepts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel
from pydantic_ai import RunContext

from llm_do import (
    CallContext,
    DepthLimitError,
    LimitError,
    LoopError,
    ModelBehaviourError,
    RunTimeoutError,
    StepLimitError,
    ToolError,
)
from llm_do.text.words import with_count
from tests.runtime.request.counting import add, assert_continues, counting
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script

# -- steps


def test_the_model_gets_at_most_max_steps_requests() -> None:
    model = counting()
    runtime = runtime_of([agent("main", model, tools=[add], max_steps=4)])

    result = carry_out(runtime)

    assert isinstance(result.error, StepLimitError)
    assert len(model.asked) == result.steps == 4
    assert (result.status, result.exit_code) == ("limited", 6)
    assert result.error.agent_path == "main"
    assert len(results_of(result.messages)) == 4
    assert result.error.messages == result.messages
    assert_continues(runtime, result.error)


def test_ten_steps_are_the_default_and_enough_when_the_tenth_answers() -> None:
    assert isinstance(carry_out(runtime_of([agent("main", counting(), tools=[add])])).error, StepLimitError)
    result = carry_out(runtime_of([agent("main", counting(n=9), tools=[add])]))
    assert (result.output, result.steps) == ("counted", 10)


@pytest.mark.parametrize(
    ("declared", "project", "caller", "steps"), [(3, 5, None, 3), (None, 5, None, 5), (3, 5, 2, 2)]
)
def test_the_callers_limit_overrides_the_agents_which_overrides_the_projects(
    declared: Any, project: int, caller: Any, steps: int
) -> None:
    model = counting()
    runtime = runtime_of(
        [agent("main", model, tools=[add], max_steps=declared)], max_steps=project, options={"max_steps": caller}
    )

    assert carry_out(runtime).steps == steps


def test_steps_are_not_accumulated_over_a_conversation() -> None:
    model = script(call("add", a=1, b=1), call("add", a=2, b=2), "answered")
    runtime = runtime_of([agent("main", model, tools=[add], max_steps=3)])
    context = None
    for _ in range(4):
        result = asyncio.run(runtime.run("more", execution_context=context))
        before = context.messages if context else ()
        assert result.messages[: len(before)] == list(before)
        context = result.execution_context
        assert result.steps == 3
    assert sum(message.kind == "response" for message in context.messages) == 12


def test_a_childs_steps_are_counted_separately() -> None:
    inner = agent("inner", counting(n=3), tools=[add], max_steps=4)
    main = agent(
        "main", script(call("inner", input="a"), call("inner", input="b"), "done"), toolsets=[inner], max_steps=3
    )

    result = carry_out(runtime_of([main, inner]))

    assert (result.output, result.steps) == ("done", 11)


# -- loops


def test_the_same_batch_does_not_run_a_third_time() -> None:
    ran: list[int] = []

    def note(n: int) -> str:
        ran.append(n)
        return "saved"

    runtime = runtime_of([agent("main", script([call("note", n=1), call("note", n=2)]), tools=[note])])
    ear = heard(runtime, "tool_call")

    result = carry_out(runtime)

    assert isinstance(result.error, LoopError)
    assert sorted(ran) == [1, 1, 2, 2]
    assert len(ear.events) == 4
    assert result.steps == 3
    assert result.status == "limited"
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"] * 4 + ["interrupted"] * 2
    assert_continues(runtime, result.error)


def test_whitespace_and_key_order_do_not_hide_a_loop() -> None:
    turns = [
        [call("add", '{"a": 1, "b": 2}'), call("add", '{"a": 3, "b": 4}')],
        [call("add", '{"b":4,"a":3}'), call("add", {"b": 2, "a": 1})],
        [call("add", '{ "a" : 1 , "b" : 2 }'), call("add", '{"a": 3, "b": 4}')],
    ]
    result = carry_out(runtime_of([agent("main", script(*turns, "never"), tools=[add])]))

    assert isinstance(result.error, LoopError)
    assert result.steps == 3


@pytest.mark.parametrize(("threshold", "steps"), [(1, 1), (2, 2), (5, 5), (0, 10)])
def test_the_threshold_can_be_set_and_zero_is_off(threshold: int, steps: int) -> None:
    result = carry_out(
        runtime_of([agent("main", script(call("add", a=1, b=1)), tools=[add])], loop_threshold=threshold)
    )

    assert result.steps == steps
    assert isinstance(result.error, LoopError if threshold else StepLimitError)


def test_a_different_batch_in_between_breaks_a_loop() -> None:
    one, two = call("add", a=1, b=1), call("add", a=2, b=2)
    result = carry_out(runtime_of([agent("main", script(one, one, two, one, one, "fin"), tools=[add])]))

    assert result.output == "fin"


def test_a_denied_call_counts_too() -> None:
    answers = Answers(["deny"])
    result = carry_out(runtime_of([agent("main", script(call("add", a=1, b=1)), tools=[add])], approvals=answers))

    assert isinstance(result.error, LoopError)
    assert len(answers.asked) == 2


@pytest.mark.parametrize(
    "asked", [call("nope"), call("add", '{"a":'), call("add", a="x", b=1), call("add", "[" * 3000)]
)
def test_refused_and_malformed_calls_count_too(asked: Any) -> None:
    result = carry_out(runtime_of([agent("main", script(asked), tools=[add])]))

    assert isinstance(result.error, LoopError)
    strict(result.messages)


def test_loop_detection_starts_over_in_a_continued_conversation() -> None:
    runtime = runtime_of([agent("main", script(call("add", a=1, b=1), call("add", a=1, b=1), "fin"), tools=[add])])
    first = asyncio.run(runtime.run("go"))
    second = asyncio.run(runtime.run("go", messages=first.messages))

    assert second.output == "fin"


# -- depth


def recursive() -> Any:
    """An agent that calls itself until that fails, then returns the error it got."""

    def turn(messages: Any, info: Any) -> Any:
        results = results_of(messages)
        return results[-1][2] if results else [call("deep", input="down")]

    spec = agent("deep", script(turn))
    spec.toolsets = [spec]
    return spec


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_calls_deeper_than_max_depth_fail(limit: int) -> None:
    runtime = runtime_of([recursive()], options={"max_depth": limit})
    ear = heard(runtime)

    result = carry_out(runtime)

    assert result.status == "completed"
    assert max(event.depth for event in ear.events) == limit
    assert len(result.calls) == limit - 1
    assert [error.type for error in result.errors] == ["DepthLimitError"]
    assert f"deeper than {with_count(limit, 'call')}" in result.output
    strict(result.messages)


def test_a_call_from_python_that_is_too_deep_raises_a_typed_error() -> None:
    caught: list[Exception] = []

    async def down(input: Any, ctx: CallContext) -> str:
        try:
            return await ctx.call("step", {"n": 0})
        except DepthLimitError as error:
            caught.append(error)
            return "too deep"

    async def step(ctx: RunContext[CallContext], n: int) -> str:
        return await ctx.deps.call("step", {"n": n + 1})

    result = carry_out(runtime_of([], down, tools={"step": step}))

    assert result.output == "too deep"
    assert isinstance(caught[0], DepthLimitError)
    assert caught[0].status == "limited"
    assert len(result.calls) == 5


def test_an_uncaught_depth_error_ends_the_run_as_limited() -> None:
    spec = recursive()

    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("deep", "x")

    result = carry_out(runtime_of([spec], main, max_depth=0))

    assert isinstance(result.error, DepthLimitError)
    assert result.status == "limited"


# -- time


async def forever() -> str:
    await asyncio.Event().wait()
    return ""


@pytest.mark.parametrize("where", ["tool", "model", "nested"])
def test_a_run_that_takes_too_long_ends_as_limited(where: str) -> None:
    async def hanging(messages: Any, info: Any) -> Any:
        await asyncio.Event().wait()

    inner = agent("inner", script(call("forever")), tools=[forever])
    main = {
        "tool": agent("main", script([call("forever"), call("add", a=1, b=1)]), tools=[forever, add]),
        "model": agent("main", script([call("add", a=1, b=1)], hanging), tools=[add]),
        "nested": agent("main", script([call("inner", input="x")]), toolsets=[inner]),
    }[where]
    runtime = runtime_of([main, inner], options={"run_timeout": 0.05})

    result = carry_out(runtime)

    assert isinstance(result.error, RunTimeoutError)
    assert (result.status, result.exit_code) == ("limited", 6)
    runtime = runtime_of([main])
    assert_continues(runtime, result.error)


def test_a_run_within_its_timeout_is_not_affected() -> None:
    assert carry_out(runtime_of([agent("main", script("x"))], options={"run_timeout": 60})).output == "x"


# -- what the model returns


class Answer(BaseModel):
    number: int


@pytest.mark.parametrize("retries", [None, 0, 2])
def test_too_many_empty_replies_are_a_model_error(retries: int | None) -> None:
    model = script("")
    runtime = runtime_of([agent("main", model, retries=retries)])

    result = carry_out(runtime)

    assert isinstance(result.error, ModelBehaviourError)
    assert (result.status, result.exit_code) == ("provider_failed", 7)
    assert len(model.asked) == (1 if retries is None else retries) + 1
    assert_continues(runtime, result.error)


def test_an_empty_reply_followed_by_an_answer_is_fine() -> None:
    replies = iter(["", "there"])

    assert carry_out(runtime_of([agent("main", script(lambda messages, info: next(replies)))])).output == "there"


@pytest.mark.parametrize(
    "output_type",
    [
        Answer,
        {"type": "object", "title": "Answer", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    ],
)
def test_too_much_invalid_structured_output_is_a_model_error(output_type: Any) -> None:
    def turn(messages: Any, info: Any) -> Any:
        return [call(info.output_tools[0].name, number="none")]

    model = script(turn)
    runtime = runtime_of([agent("main", model, output_type=output_type, retries=2)])

    result = carry_out(runtime)

    assert isinstance(result.error, ModelBehaviourError)
    for words in ("the last answer: ", "number: ", "integer"):
        assert words in result.error.message
    assert len(model.asked) == 3
    strict(result.messages)


# -- in general


@given(
    st.lists(st.sampled_from(["add", "nope", "fail", "inner", "bad"]), min_size=1, max_size=5),
    st.sampled_from(["steps", "loop", "budget", "tools"]),
)
def test_a_run_ended_by_any_limit_has_a_valid_history(names: list[str], kind: str) -> None:
    def fail() -> str:
        raise ToolError("no")

    asks = {
        "add": call("add", a=1, b=1),
        "nope": call("nope"),
        "fail": call("fail"),
        "inner": call("inner", input="x"),
        "bad": call("add", "{"),
    }

    def turn(messages: Any, info: Any) -> Any:
        extra = [] if kind == "loop" else [call("add", a=len(messages), b=0)]
        return [call(asks[name].tool_name, asks[name].args) for name in names] + extra

    inner = agent("inner", script([call("add", a=1, b=1)], "ok"), tools=[add])
    main = agent("main", script(turn), tools=[add, fail], toolsets=[inner], max_steps=3)
    limits = {"budget": {"budget": {"requests": 2}}, "tools": {"budget": {"tool_calls": 4}}}.get(kind, {})

    result = carry_out(runtime_of([main, inner], **limits))

    assert isinstance(result.error, LimitError)
    strict(result.messages)
    for record in result.calls:
        strict(record.messages)

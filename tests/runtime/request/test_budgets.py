"""A run's budget covers parallel and nested calls: never one request, call or token too many."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from llm_do import (
    BudgetError,
)
from tests.runtime.request.counting import add, assert_continues, counting
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script


def tree(children: int, requests: int, model_for: Any = None) -> list[Any]:
    """A project whose main agent calls `children` workers at once, each making `requests` requests."""
    workers = [
        agent(f"w{n}", (model_for or (lambda: counting(n=requests - 1)))(), tools=[add]) for n in range(children)
    ]
    main = agent("main", script([call(worker.name, input="go") for worker in workers], "done"), toolsets=workers)
    return [main, *workers]


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 11, 16, 17, 20])
def test_parallel_children_never_send_one_request_too_many(limit: int) -> None:
    specs = tree(5, 3)
    runtime = runtime_of(specs, budget={"requests": limit})

    result = carry_out(runtime)

    sent = sum(len(spec.model.asked) for spec in specs)
    assert sent == min(limit, 17) == result.usage.requests
    if limit < 17:
        assert isinstance(result.error, BudgetError)
        assert_continues(runtime_of([specs[0]]), result.error)
    else:
        assert result.output == "done"
    for record in result.calls:
        strict(record.messages)


@pytest.mark.parametrize("limit", [1, 4, 9, 15, 40])
def test_parallel_children_never_run_one_tool_too_many(limit: int) -> None:
    ran = 0

    def work(n: int) -> int:
        nonlocal ran
        ran += 1
        return n

    workers = [agent(f"w{n}", script([call("work", n=k) for k in range(3)], "x"), tools=[work]) for n in range(5)]
    main = agent("main", script([call(worker.name, input="go") for worker in workers], "done"), toolsets=workers)

    result = carry_out(runtime_of([main, *workers], budget={"tool_calls": limit}))

    assert ran + len(result.calls) <= result.usage.tool_calls <= limit
    assert (result.usage.tool_calls == 20) == (limit == 40)
    strict(result.messages)


@pytest.mark.parametrize("limit", [0, 1, 3, 5])
def test_descendants_are_counted_over_all_branches(limit: int) -> None:
    specs = tree(5, 1)

    result = carry_out(runtime_of(specs, budget={"descendants": limit}))

    assert len(result.calls) == limit
    assert result.output == "done"
    assert [outcome for _, outcome, _ in results_of(result.messages)].count("success") == limit


def spender(used: list[int], inputs: int, outputs: int) -> Any:
    """A model that reads `inputs` tokens and writes the smaller of `outputs` and `max_tokens`."""

    async def turn(messages: Any, info: Any) -> Any:
        await asyncio.sleep(0)
        spent = min(outputs, (info.model_settings or {}).get("max_tokens", outputs))
        used.append(spent)
        done = sum(message.kind == "response" for message in messages)
        parts = [call("add", a=done, b=0)] if done < 2 else [TextPart("x")]
        return ModelResponse(parts, usage=RequestUsage(input_tokens=inputs, output_tokens=spent))

    return script(turn)


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", [50, 300, 1000, 2500, 100_000])
def test_parallel_children_never_use_one_output_token_too_many(limit: int) -> None:
    used: list[int] = []
    specs = tree(4, 3, lambda: spender(used, 1, 100))
    specs[0].model = script([call(f"w{n}", input="go") for n in range(4)], "ok")

    result = carry_out(runtime_of(specs, budget={"output_tokens": limit}))

    assert result.usage.output_tokens <= limit
    if limit == 100_000:
        assert result.output == "ok"
        assert used == [100] * 12
    strict(result.messages)


def test_max_tokens_is_lowered_to_the_remaining_budget_if_there_is_one() -> None:
    model = script(
        lambda messages, info: ModelResponse([call("add", a=len(messages), b=0)], usage=RequestUsage(output_tokens=40))
    )
    runtime = runtime_of([agent("main", model, tools=[add], max_tokens=100)], budget={"output_tokens": 120})
    result = carry_out(runtime)

    assert [asked.settings["max_tokens"] for asked in model.asked] == [100, 80, 40]
    assert isinstance(result.error, BudgetError)
    assert result.usage.output_tokens == 120

    free = script("x")
    carry_out(runtime_of([agent("main", free)], budget={"requests": 5}))
    assert free.asked[0].settings == {}


def test_a_large_budget_does_not_raise_max_tokens_above_model_limits() -> None:
    model = script("x")
    carry_out(runtime_of([agent("main", model)], budget={"total_tokens": 10_000_000}))

    assert model.asked[0].settings == {"max_tokens": 16_384}


def test_a_request_waits_for_tokens_that_others_have_reserved() -> None:
    used: list[int] = []
    specs = tree(3, 3, lambda: spender(used, 1, 100))

    result = carry_out(runtime_of(specs, budget={"output_tokens": 17_000}))

    assert result.output == "done"
    assert used == [100] * 9


def test_a_prompt_larger_than_the_budget_is_not_sent() -> None:
    model = script("x")
    result = carry_out(runtime_of([agent("main", model)], budget={"input_tokens": 50}), "word " * 1000)

    assert isinstance(result.error, BudgetError)
    assert model.asked == []


def test_failed_requests_release_their_reservation() -> None:
    model = script(ValueError("broken"))
    worker = agent("worker", model, max_tokens=90)
    main = agent("main", script([call("worker", input="x")], "ok"), toolsets=[worker], max_tokens=90)

    result = carry_out(runtime_of([main, worker], budget={"output_tokens": 100}))

    assert result.output == "ok"


class Counting(FunctionModel):
    """A model that counts a request's tokens before it is sent."""

    counted: Any = 400

    async def count_tokens(self, *request: Any) -> RequestUsage:
        if isinstance(self.counted, Exception):
            raise self.counted
        return RequestUsage(input_tokens=self.counted)


@pytest.mark.parametrize(("limit", "sent"), [(399, 0), (400, 1)])
def test_a_model_that_can_count_tokens_replaces_the_estimate(limit: int, sent: int) -> None:
    asked: list[Any] = []

    def turn(messages: Any, info: Any) -> ModelResponse:
        asked.append(messages)
        return ModelResponse([TextPart("x")])

    result = carry_out(runtime_of([agent("main", Counting(turn))], budget={"input_tokens": limit}))

    assert len(asked) == sent
    assert (result.status == "completed") == bool(sent)


@pytest.mark.parametrize("error", [ModelHTTPError(503, "m", None), NotImplementedError()], ids=repr)
def test_tokens_are_estimated_if_counting_fails(error: Exception) -> None:
    model = Counting(lambda messages, info: ModelResponse([TextPart("x")]))
    model.counted = error

    assert carry_out(runtime_of([agent("main", model)], budget={"input_tokens": 50})).output == "x"
    assert carry_out(runtime_of([agent("main", model)], budget={"input_tokens": 50}), "word " * 99).status == "limited"


def test_an_images_estimate_follows_provider_pricing_and_not_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(bytes(500_000))
    given = {"input": "look", "attachments": ["photo.png"]}

    def status(limit: int) -> str:
        runtime = runtime_of([agent("main", script("x"))], root=tmp_path, budget={"input_tokens": limit})
        return carry_out(runtime, given).status

    assert [status(100), status(5_000)] == ["limited", "completed"]


def test_instructions_and_tools_are_estimated_too() -> None:
    def tool(text: str) -> str:
        return text

    tool.__doc__ = "word " * 200
    for wordy in (
        agent("main", script("x"), instructions="word " * 200),
        agent("main", script("x"), tools=[tool]),
    ):
        assert carry_out(runtime_of([wordy], budget={"input_tokens": 200})).status == "limited"

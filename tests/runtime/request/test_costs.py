"""What runs cost: a sum is complete or None, and a budget in US dollars is enforced or the run is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from llm_do import AgentSpec, BudgetError, RunResult, Runtime, RuntimeConfig, Usage
from llm_do.runtime.request.cost import response_usage
from tests.support.openai_server import Request, serve
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


class Remote(FunctionModel):
    """A custom model from an unknown provider."""

    @property
    def system(self) -> str:
        return "mine"


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def answer(*parts: Any, cost: str | None = "0.25") -> ModelResponse:
    """A response with 15 tokens at this price."""
    usage = RequestUsage(input_tokens=10, output_tokens=5, cost=None if cost is None else Decimal(cost))
    return ModelResponse([TextPart(part) if isinstance(part, str) else part for part in parts], usage=usage)


def again(number: int) -> ToolCallPart:
    return call("add", a=number, b=number)


def over_http(model: str, *, budget: dict[str, Any] | None = None, retried: int = 0) -> tuple[RunResult, list[Request]]:
    turns = [{"status": 503, "times": 1}] * retried + [{"text": "x", "usage": [1000, 100]}]
    with serve({model: turns}) as (url, log):
        spec = AgentSpec("main", model=f"openai-chat:{model}", model_settings={"base_url": url})
        project = project_of([spec], budget=budget)
        config = RuntimeConfig.of(project, approvals="approve_all", retry_delay=0.0)
        return carry_out(Runtime(project, config=config)), log


def test_a_sum_is_known_if_every_part_with_tokens_has_a_price() -> None:
    priced = Usage(requests=1, input_tokens=3, cost_usd=0.5)
    unpriced = Usage(requests=1, input_tokens=3)

    assert (priced + priced).cost_usd == 1.0
    assert (Usage() + priced + Usage(tool_calls=1) + Usage(requests=1)).cost_usd == 0.5
    assert (priced + unpriced).cost_usd is None
    assert (unpriced + priced + priced).cost_usd is None
    assert (priced + Usage(requests=1, input_tokens=3, cost_usd=0.0)).cost_usd == 0.5
    assert (Usage() + Usage()).cost_usd is None


usages = st.builds(
    Usage,
    requests=st.integers(0, 3),
    input_tokens=st.integers(0, 3),
    output_tokens=st.integers(0, 3),
    cost_usd=st.none() | st.sampled_from([0.0, 0.25, 4.0]),
)


@given(st.lists(usages, min_size=1, max_size=6), st.randoms())
def test_a_cost_depends_neither_on_order_nor_on_grouping(parts: list[Usage], random: Any) -> None:
    mixed = random.sample(parts, len(parts))
    cut = random.randrange(len(parts) + 1)

    assert sum(parts, Usage()) == sum(mixed[:cut], Usage()) + sum(mixed[cut:], Usage())


def test_a_run_adds_up_the_costs_of_its_responses() -> None:
    worker = agent("worker", script(answer("done", cost="0.5")))
    main = agent("main", script(answer(call("worker", input="x")), answer("over")), toolsets=[worker])
    runtime = runtime_of([main, worker])
    ear = heard(runtime)
    result = carry_out(runtime)

    assert result.usage.cost_usd == 1.0
    assert [record.usage.cost_usd for record in result.calls] == [0.5]
    assert [event.usage["cost_usd"] for event in ear.of("usage")] == [0.25, 0.5, 0.25]
    assert runtime.usage.cost_usd == 1.0


def test_a_run_with_an_unpriced_model_has_no_total_cost() -> None:
    worker = agent("worker", script(answer("done", cost=None)))
    main = agent("main", script(answer(call("worker", input="x")), answer("over")), toolsets=[worker])
    result = carry_out(runtime_of([main, worker]))

    assert result.usage.cost_usd is None
    assert result.to_dict()["usage"]["cost_usd"] is None
    assert result.usage.total_tokens == 45


def test_a_retried_request_leaves_the_price_known() -> None:
    result, log = over_http("gpt-4o", retried=1)

    assert len(log) == result.usage.requests == 2
    assert result.usage.cost_usd is not None
    assert 0 < result.usage.cost_usd < 0.1


def test_a_spent_dollar_budget_ends_a_run_before_its_next_request() -> None:
    model = script(*(answer(again(number)) for number in range(9)))
    result = carry_out(runtime_of([agent("main", model, tools=[add])], budget={"cost_usd": 0.6}))

    assert isinstance(result.error, BudgetError)
    assert result.error.message == "the run's budget of 0.6 US dollars is used up"
    assert len(model.asked) == 3
    assert result.usage.cost_usd == 0.75


def test_an_unpriced_part_does_not_hide_known_costs_from_the_budget() -> None:
    worker = agent("worker", script(answer("done", cost=None)))
    calls = [answer(call("worker", input=str(number)), cost="0.25") for number in range(9)]
    result = carry_out(runtime_of([agent("main", script(*calls), toolsets=[worker]), worker], budget={"cost_usd": 0.5}))

    assert isinstance(result.error, BudgetError)
    assert "is used up" in result.error.message
    assert result.usage.cost_usd is None


def test_a_custom_model_without_a_price_is_refused_after_its_first_response() -> None:
    asked: list[int] = []

    def turn(messages: Any, info: Any) -> ModelResponse:
        asked.append(len(messages))
        return answer(again(len(asked)), cost=None)

    result = carry_out(runtime_of([agent("main", Remote(turn), tools=[add])], budget={"cost_usd": 9}))

    assert isinstance(result.error, BudgetError)
    assert "a model with an unknown price has answered" in result.error.message
    assert len(asked) == 1


def test_an_unpriced_provider_is_refused_before_anything_is_sent() -> None:
    result, log = over_http("unheard-of", budget={"cost_usd": 9})

    assert isinstance(result.error, BudgetError)
    assert "the price of openai:unheard-of is unknown" in result.error.message
    assert log == []


@pytest.mark.parametrize("model", ["unheard-of", "gpt-4o"])
def test_prices_do_not_matter_without_a_dollar_budget(model: str) -> None:
    result, log = over_http(model, budget={"requests": 2})

    assert result.status == "completed"
    assert len(log) == 1


def test_an_in_process_model_needs_no_price() -> None:
    result = carry_out(
        runtime_of([agent("main", script(again(1), again(2), "x"), tools=[add])], budget={"cost_usd": 1})
    )

    assert result.status == "completed"
    assert result.usage.cost_usd is None


class Asked(ModelResponse):
    """Counts how often its price is looked up."""

    count = 0

    def cost(self) -> Any:
        Asked.count += 1
        raise LookupError("no such model")


def test_a_model_without_a_price_is_looked_up_once() -> None:
    response = Asked([TextPart("x")], usage=RequestUsage(input_tokens=1), model_name="ours", provider_name="looked-up")

    assert [response_usage(response).cost_usd for _ in range(3)] == [None] * 3
    assert Asked.count == 1

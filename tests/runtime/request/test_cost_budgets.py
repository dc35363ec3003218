"""A budget in US dollars is never exceeded where prices are known: each request holds what it may cost at most."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from llm_do import BudgetError, RunResult
from llm_do.runtime.record.transport import OutgoingRequest
from llm_do.runtime.request.cost_bounds import cost_bound, most_input_tokens
from tests.runtime.request.counting import add
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

INPUT = 2.5e-6
"""What a token that is sent to gpt-4o costs, in US dollars."""

OUTPUT = 10e-6
"""What a token of an answer of gpt-4o costs, in US dollars."""


class Priced(FunctionModel):
    """A model of the price list that writes as much as it may, once so many requests have come together."""

    def __init__(self, answers: int = 3, most: int = 5_000, together: int = 1, sent: int = 100) -> None:
        super().__init__(self.turn)
        self.answers, self.most, self.sent = answers, most, sent
        self.allowed: list[int | None] = []
        self.together = asyncio.Barrier(together)
        self.running = self.widest = 0
        self.spent = 0.0

    @property
    def system(self) -> str:
        return "openai"

    @property
    def model_name(self) -> str:
        return "gpt-4o"

    async def turn(self, messages: Any, info: Any) -> ModelResponse:
        allowed = (info.model_settings or {}).get("max_tokens")
        self.allowed.append(allowed)
        self.running += 1
        self.widest = max(self.widest, self.running)
        async with asyncio.timeout(60):
            await self.together.wait()
        await asyncio.sleep(0.001)
        self.running -= 1
        done = sum(message.kind == "response" for message in messages)
        parts = [call("add", a=done, b=0)] if done < self.answers - 1 else [TextPart("x")]
        sent, written = self.sent + 100 * len(messages), min(self.most, allowed or self.most)
        price = sent * INPUT + written * OUTPUT
        self.spent += price
        usage = RequestUsage(input_tokens=sent, output_tokens=written, cost=Decimal(str(price)))
        return ModelResponse(parts, usage=usage)


def parallel(model: Priced, budget: float, *, children: int = 4, **settings: Any) -> RunResult:
    """Run agents that ask the model side by side."""
    workers = [agent(f"w{n}", model, tools=[add], **settings) for n in range(children)]
    main = agent("main", script([call(each.name, input="go") for each in workers], "done"), toolsets=workers)
    return carry_out(runtime_of([main, *workers], budget={"cost_usd": budget}))


@pytest.mark.sample(3)
@pytest.mark.parametrize("budget", [0.003, 0.01, 0.06, 0.2, 0.35, 0.5, 0.61])
@pytest.mark.parametrize("max_tokens", [None, 5_000])
def test_parallel_requests_never_cost_more_than_the_budget(budget: float, max_tokens: int | None) -> None:
    settings = {} if max_tokens is None else {"max_tokens": max_tokens}

    model = Priced()

    result = parallel(model, budget, **settings)

    assert model.spent <= budget
    refused = [each.error for each in result.calls if each.error is not None]
    assert bool(refused) == (budget < 0.6)
    assert all(each.type == "BudgetError" and "US dollars" in each.message for each in refused)


def test_requests_that_fit_together_are_made_together() -> None:
    model = Priced(together=4)

    result = parallel(model, 2.0)

    assert result.output == "done"
    assert model.allowed == [16_384] * 12
    assert 0.6 < model.spent < 0.8


def test_a_request_waits_for_what_others_hold() -> None:
    model = Priced()

    result = parallel(model, 0.9, max_tokens=16_384)

    assert result.output == "done"
    assert model.widest < 5
    assert model.spent <= 0.9


def test_what_is_left_limits_the_answer_and_then_the_run_ends() -> None:
    model = Priced(answers=9, most=4_000)

    result = carry_out(runtime_of([agent("main", model, tools=[add])], budget={"cost_usd": 0.1}))

    assert isinstance(result.error, BudgetError)
    assert model.allowed[0] == pytest.approx(0.097 / OUTPUT, rel=0.05)
    assert (model.allowed[-1] or 0) < 1_000
    assert 0.08 < model.spent <= 0.1


def test_a_budget_that_not_even_the_input_fits_in_sends_nothing() -> None:
    model = Priced()

    result = carry_out(runtime_of([agent("main", model)], budget={"cost_usd": 0.0001}))

    assert isinstance(result.error, BudgetError)
    assert result.error.message.startswith(
        "the run's budget of 0.0001 US dollars has 0.0001 left, and the next request"
    )
    assert model.allowed == []


def test_what_cannot_be_known_beforehand_is_said_once() -> None:
    model = Priced(answers=4)

    def add(a: int, b: int) -> BinaryContent:
        """Draw."""
        return BinaryContent(b"\x89PNG", media_type="image/png")

    result = carry_out(runtime_of([agent("main", model, tools=[add])], budget={"cost_usd": 9}))

    assert result.output == "x"
    assert model.allowed == [16_384, None, None, None]
    (warning,) = [each.message for each in result.warnings]
    assert warning.startswith("what a request to ")
    assert "is known only when it has been answered" in warning


def test_a_bound_is_at_least_the_price() -> None:
    model = Priced()
    request = OutgoingRequest(
        model, "gpt-4o", [ModelRequest([UserPromptPart("é" * 1000)])], None, ModelRequestParameters()
    )

    plain = cost_bound(request, None)
    tiered = cost_bound(
        OutgoingRequest(model, "gpt-4o", request.messages, {"service_tier": "priority"}, request.parameters), None
    )
    counted = cost_bound(request, 100)

    assert plain is not None
    assert tiered is not None
    assert counted is not None
    assert plain.input_usd >= 2000 * INPUT
    assert plain.token_usd == pytest.approx(OUTPUT)
    assert tiered.token_usd > plain.token_usd
    assert counted.input_usd == pytest.approx(100 * INPUT)


def test_what_was_sent_before_is_known_from_its_answer() -> None:
    history = [
        ModelRequest([UserPromptPart("x" * 100_000)]),
        ModelResponse([TextPart("y" * 100)], usage=RequestUsage(input_tokens=12_500, output_tokens=25)),
        ModelRequest([UserPromptPart("z" * 10)]),
    ]

    assert 12_535 < (most_input_tokens(history, ModelRequestParameters()) or 0) < 14_000

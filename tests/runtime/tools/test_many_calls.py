"""One response with more tool calls than `max_calls_per_response`: the first run, the rest are refused as one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from llm_do import RunTimeoutError
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


def add(a: int) -> str:
    """Add."""
    return f"added {a}"


def calls(count: int, name: str = "add") -> list[Any]:
    return [call(name, {"a": number}, f"c{number}") for number in range(count)]


def test_calls_beyond_the_limit_are_refused_and_the_model_is_told_once() -> None:
    model = script(calls(9), calls(2), "fin")
    runtime = runtime_of([agent("main", model, tools=[add])], max_calls_per_response=3)
    ear = heard(runtime)
    result = carry_out(runtime)

    strict(result.messages)
    assert [(one, outcome) for one, outcome, _ in results_of(result.messages)] == [
        ("c0", "success"),
        ("c1", "success"),
        ("c2", "success"),
        ("c3", "failed"),
        ("c0-2", "success"),
        ("c1-2", "success"),
    ]
    assert results_of(result.messages)[3][2] == (
        "not run: at most 3 calls of one response run, so this one and 5 more were left out; ask for fewer at a time"
    )
    assert [each.message for each in result.warnings] == [
        "the model of agent 'main' asked for 9 tool calls in one response; "
        "only the first 3 may run (`max_calls_per_response`)"
    ]
    assert result.usage.tool_calls == 5
    assert len(ear.of("tool_call")) == len(ear.of("tool_result")) == 6


@pytest.mark.sample(1)
@pytest.mark.parametrize(("count", "refused"), [(127, 0), (128, 0), (129, 1), (130, 1)])
def test_128_calls_run_by_default(count: int, refused: int) -> None:
    result = carry_out(runtime_of([agent("main", script(calls(count), "fin"), tools=[add])]))
    outcomes = [outcome for _, outcome, _ in results_of(result.messages)]
    assert outcomes == ["success"] * min(count, 128) + ["failed"] * refused
    assert bool(result.warnings) is bool(refused)


@pytest.mark.parametrize("name", ["add", "nope"])
def test_the_call_that_stands_for_the_rest_may_be_invalid_or_unknown(name: str) -> None:
    asked = [*calls(1), call(name, {"b": 1}, "last"), call(name, {"b": 2}, "left out")]
    result = carry_out(runtime_of([agent("main", script(asked, "fin"), tools=[add])], max_calls_per_response=1))
    assert results_of(result.messages)[1] == (
        "last",
        "failed",
        "not run: at most 1 call of one response run, so this one and 1 more were left out; ask for fewer at a time",
    )


def test_an_output_beside_many_calls_is_not_counted() -> None:
    asked = [*calls(5), call("final_result", {"response": 7}, "out")]
    spec = agent("main", script(asked), tools=[add], output_type=int)
    result = carry_out(runtime_of([spec], max_calls_per_response=2))
    assert result.output == 7, result.error


@pytest.mark.slow
def test_fifty_thousand_calls_keep_the_runs_time_limit() -> None:
    runtime = runtime_of([agent("main", script(calls(50_000), "fin"), tools=[add])], run_timeout=60)
    begun = time.process_time()
    result = carry_out(runtime)
    assert not isinstance(result.error, RunTimeoutError)
    assert result.output == "fin"
    assert len(results_of(result.messages)) == 129
    assert time.process_time() - begun < 8  # under one second on a quiet machine

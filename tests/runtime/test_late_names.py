"""Names that are registered after linking: agents, tools and toolsets that a runtime alone knows."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do import CallContext, Runtime, UsageError
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_names_can_be_registered_late() -> None:
    runtime = runtime_of([agent("main", script([call("later", input="x")], "fin"), toolsets=["later"])])
    first = carry_out(runtime)
    assert first.status == "failed"
    assert "later" in str(first.error)

    runtime.register_agents(
        {
            "later": agent(
                "later", script([call("add", a=1, b=2), call("mul", a=2, b=3)], "late"), tools=["add"], toolsets=["kit"]
            )
        }
    )
    runtime.register_tools({"add": add})
    runtime.register_toolsets({"kit": FunctionToolset([_mul()])})
    result = carry_out(runtime)

    assert result.output == "fin"
    assert [text for _, _, text in results_of(result.calls[0].messages)] == ["3", "6"]


def _mul() -> Any:
    def mul(a: int, b: int) -> int:
        return a * b

    return mul


def test_a_name_registered_during_a_run_can_be_called_at_once() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        ctx.runtime.register_agents({"fresh": agent("fresh", script("made"))})
        return await ctx.call("fresh", "x")

    assert carry_out(runtime_of([], main)).output == "made"


@each_row("name", ["bad name", "", "1st", "a" * 65, "a\n", 3])
def test_an_invalid_tool_name_is_not_registered(name: Any) -> None:
    runtime = runtime_of([agent("main", script("x"))])

    for register in (runtime.register_agents, runtime.register_tools, runtime.register_toolsets):
        with pytest.raises(UsageError, match="can't be registered"):
            register({"fine": agent("fine", "test"), name: agent("a", "test")})  # type: ignore[dict-item]
    assert list(runtime.registry) == ["main"]


def test_only_agents_are_registered_as_agents() -> None:
    with pytest.raises(UsageError, match="'later' can't be registered as an agent: it is a function"):
        runtime_of([agent("main", script("x"))]).register_agents({"later": add})  # type: ignore[dict-item]


def test_registering_in_one_runtime_does_not_affect_another() -> None:
    project = project_of([agent("main", script("x"))])
    first, second = Runtime(project), Runtime(project)
    first.register_agents({"late": agent("late", script("late"))})

    assert carry_out(first, entry="late").output == "late"
    with pytest.raises(UsageError):
        carry_out(second, entry="late")


def test_a_toolset_instance_is_shared_and_a_factory_is_not() -> None:
    made: list[Any] = []

    def factory(ctx: RunContext[CallContext]) -> FunctionToolset[Any]:
        made.append(ctx.deps.path)
        return FunctionToolset([_counter()])

    shared: FunctionToolset[Any] = FunctionToolset([_counter("shared")])
    turns = [call("count"), call("shared")], "fin"
    runtime = runtime_of([agent("main", script(*turns), toolsets=[factory, shared])])
    first, second = carry_out(runtime), carry_out(runtime)

    assert [text for _, _, text in results_of(first.messages)] == ["1", "1"]
    assert [text for _, _, text in results_of(second.messages)] == ["1", "2"]
    assert made == ["main", "main"]


def _counter(name: str = "count") -> Any:
    total = 0

    def count() -> int:
        nonlocal total
        total += 1
        return total

    count.__name__ = name
    return count

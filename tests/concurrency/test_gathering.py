"""Parallel members overlap, outputs are joined in declared order, and a failure ends the flow or is collected."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do import AgentSpec, CallContext, RunError, Swarm
from llm_do.flows import MemberFailure, ParallelGroup, SerialGroup
from tests.flows.flow_runs import flow_runtime, run_flow, saying, text_of
from tests.support.runs import agent
from tests.support.scripted import script


def test_parallel_members_overlap() -> None:
    """Each member waits for all: one after the other, they would wait forever."""
    barrier = asyncio.Barrier(3)

    def waiting(name: str) -> AgentSpec:
        async def turn(messages: Any, info: Any) -> str:
            await barrier.wait()
            return name

        return agent(name, script(turn))

    assert text_of(run_flow(ParallelGroup("all", [waiting(name) for name in "abc"]))) == "a\n\nb\n\nc"


@given(st.permutations(range(4)))
def test_outputs_are_joined_in_declared_order_whichever_ends_first(order: list[int]) -> None:
    ended: list[int] = []
    turns = [asyncio.Event() for _ in order]
    turns[order[0]].set()

    def member(index: int) -> Any:
        async def step(input: str, ctx: CallContext) -> str:
            await turns[index].wait()
            ended.append(index)
            place = order.index(index) + 1
            if place < len(order):
                turns[order[place]].set()
            return f"m{index}"

        step.__name__ = f"m{index}"
        return step

    result = run_flow(ParallelGroup("all", [member(index) for index in range(4)], separator=" "))

    assert text_of(result) == "m0 m1 m2 m3"
    assert ended == order


@pytest.mark.parametrize(
    "expression", ["a | b | c | d | e | f", "(a | b | c) | (d | (e | f))", "(a >> b) | (c >> d) | e | f"]
)
def test_max_concurrency_limits_how_many_run_at_once(expression: str) -> None:
    running, most = 0, 0

    def member(name: str) -> Any:
        async def step(input: str, ctx: CallContext) -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1
            return name

        step.__name__ = name
        return step

    flow = Swarm([member(name) for name in "abcdef"], flow=expression, separator="", max_concurrency=2)

    assert text_of(run_flow(flow)) == ("bdef" if ">>" in expression else "abcdef")
    assert most == 2


def failing_and_waiting() -> tuple[Any, Any, list[str]]:
    """A member that fails once the other one runs, and one that waits forever and records how it ended."""
    seen: list[str] = []
    begun = asyncio.Event()

    async def fails(input: str, ctx: CallContext) -> str:
        await begun.wait()
        raise ValueError("broken")

    async def waits(input: str, ctx: CallContext) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "never"

    return fails, waits, seen


def test_the_first_failure_cancels_the_others_and_is_reported() -> None:
    fails, waits, seen = failing_and_waiting()

    result = run_flow(ParallelGroup("all", [fails, waits], max_concurrency=None))

    assert (result.status, str(result.error)) == ("failed", "fails raised ValueError: broken")
    assert seen == ["cancelled"]
    assert {record.path: record.status for record in result.calls} == {
        "all/1/fails": "failed",
        "all/1/waits": "interrupted",
    }


def test_collect_lets_the_others_finish_and_reports_who_failed() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    seen: list[Any] = []
    flow = Swarm([fails, saying("b")], flow="fails | b", on_error="collect")
    aggregated = ParallelGroup(
        "aggregated", [fails, saying("b")], aggregate=lambda got: seen.extend(got) or "ok", on_error="collect"
    )

    result = run_flow(flow)
    assert text_of(result) == "fails failed: broken\n\nb's"
    assert [error.message for error in result.errors] == ["broken"]
    assert text_of(run_flow(aggregated)) == "ok"
    assert isinstance(seen[0], MemberFailure)
    assert (seen[0].name, seen[1]) == ("fails", "b's")


@pytest.mark.parametrize("budget", [{"requests": 2}, {"descendants": 2}])
def test_an_exhausted_budget_ends_the_run_even_with_collect(budget: dict[str, int]) -> None:
    members = [saying(name) for name in "abcd"]

    result = run_flow(ParallelGroup("all", members, on_error="collect"), budget=budget)

    assert (result.status, type(result.error).__name__) == ("limited", "BudgetError")


def test_collect_fails_when_every_member_fails() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    result = run_flow(ParallelGroup("all", [fails, SerialGroup("again", [fails])], on_error="collect"))

    assert (result.status, str(result.error)) == ("failed", "broken")


def test_a_member_that_cancels_itself_counts_as_failed() -> None:
    async def gives_up(input: str, ctx: CallContext) -> str:
        raise asyncio.CancelledError

    strict_flow = ParallelGroup("all", [gives_up, saying("b")])
    lenient = ParallelGroup("all", [gives_up, saying("b")], on_error="collect")

    assert run_flow(strict_flow).status == "failed"
    assert text_of(run_flow(lenient)) == "gives_up failed: gives_up raised CancelledError\n\nb's"


def test_cancelling_a_run_cancels_all_members_and_waits_for_them() -> None:
    ended: list[str] = []

    def member(name: str, begun: asyncio.Event) -> Any:
        async def step(input: str, ctx: CallContext) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)
            return name

        step.__name__ = name
        return step

    async def main() -> None:
        begun = [asyncio.Event(), asyncio.Event()]
        runtime = flow_runtime(ParallelGroup("all", [member("a", begun[0]), member("b", begun[1])]))
        task = asyncio.ensure_future(runtime.execute("go"))
        for each in begun:
            await each.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(ended) == ["a", "b"]

    asyncio.run(main())

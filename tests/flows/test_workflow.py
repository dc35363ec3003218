"""Workflows: nesting, accumulated usage and messages, where flows may be used, and their events."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from llm_do import CallContext, RunError, Swarm, UsageError
from llm_do.flows import ParallelGroup, SerialGroup, SwarmNode
from tests.flows.flow_runs import asked, finish, flow_runtime, outline, run_flow, saying, streamed, text_of
from tests.support.history import strict
from tests.support.runs import agent, heard
from tests.support.scripted import call, script

# -- flows in flows


def test_groups_nest_to_any_depth_and_paths_locate_each_step() -> None:
    names = "abcde"
    specs = {name: saying(name) for name in names}
    inner = Swarm([specs["b"], specs["c"]], name="inner", flow="b | c", separator="+")
    outer = Swarm([specs["a"], inner, specs["d"], specs["e"]], name="outer", flow="a >> ((inner >> d) | e)")

    result = run_flow(outer)

    assert text_of(result) == "d's\n\ne's"
    assert asked(specs["d"]) == ["b's+c's"]
    assert sorted(record.path for record in result.calls) == [
        "outer/1/a",
        "outer/2/1/inner",
        "outer/2/1/inner/1/b",
        "outer/2/1/inner/1/c",
        "outer/2/2/d",
        "outer/2/e",
    ]
    assert len({record.call_id for record in result.calls}) == 6


def test_one_swarm_under_two_names_is_two_independent_steps() -> None:
    inner = Swarm([saying("a")], name="inner")

    result = run_flow(Swarm([SwarmNode(inner, "first"), SwarmNode(inner, "second")], name="outer"))

    assert text_of(result) == "a's"
    assert [len(record.messages) for record in result.calls if record.path.endswith("/a")] == [2, 2]


def test_depth_counts_flows_and_their_steps() -> None:
    flow: Any = Swarm([saying("leaf")], name="f1")
    for number in range(2, 7):
        flow = Swarm([flow], name=f"f{number}")

    assert run_flow(flow, max_depth=6).status == "completed"
    result = run_flow(flow, max_depth=5)
    assert (result.status, type(result.error).__name__) == ("limited", "DepthLimitError")
    assert result.error.agent_path == "f6/1/f5/1/f4/1/f3/1/f2/1/f1/1/leaf"  # type: ignore[union-attr]


def test_a_budget_applies_across_all_branches() -> None:
    members = [saying(name) for name in "abcd"]

    result = run_flow(ParallelGroup("all", members), budget={"requests": 3})

    assert (result.status, type(result.error).__name__) == ("limited", "BudgetError")
    assert result.usage.requests <= 3


def test_usage_steps_and_messages_cover_all_steps() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    a = agent("a", script(call("add", {"a": 1, "b": 2}, "c1"), "3"), tools=[add])
    b, c = saying("b"), saying("c")

    result = run_flow(Swarm([a, b, c], flow="a >> (b | c)"))

    assert (result.steps, result.usage.requests, result.usage.tool_calls) == (4, 4, 1)
    assert result.usage.input_tokens == sum(record.usage.input_tokens for record in result.calls)
    strict(result.messages)
    assert [message.kind for message in result.messages] == ["request", "response"] * 4
    texts = [part.content for message in result.messages for part in message.parts if part.part_kind == "text"]
    assert texts == ["3", "b's", "c's"]


def test_an_early_end_keeps_the_messages_of_earlier_steps() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    result = run_flow(Swarm([saying("a"), fails]))

    assert [message.kind for message in result.messages] == ["request", "response"]
    assert result.error.messages == result.messages  # type: ignore[union-attr]
    assert result.output == "a's"


def test_the_conversation_goes_to_the_first_step_and_is_added_once() -> None:
    a, b = saying("a"), saying("b")
    runtime = flow_runtime(ParallelGroup("pair", [a, b]))

    first = finish(runtime, "one")
    second = finish(runtime, "two", execution_context=first.execution_context)

    assert len(a.model.asked[-1].messages) == len(b.model.asked[-1].messages) == 5  # type: ignore[union-attr]
    assert len(second.messages) == 8
    strict(second.messages)


@pytest.mark.parametrize("expression", ["up >> a", "up | a", "(up | low) >> a", "(up >> a) | b", "inner >> a"])
def test_a_function_passes_the_conversation_on_to_the_first_agent(expression: str) -> None:
    def up(text: str) -> str:
        return text.upper()

    def low(text: str) -> str:
        return text.lower()

    a, b = saying("a"), saying("b")
    inner = Swarm([low, SerialGroup("twice", [up])], name="inner")
    members = [
        each
        for name, each in {"up": up, "low": low, "a": a, "b": b, "inner": inner}.items()
        if name in re.findall(r"\w+", expression)
    ]
    runtime = flow_runtime(Swarm(members, flow=expression))

    first = finish(runtime, "one")
    second = finish(runtime, "two", execution_context=first.execution_context)
    third = finish(runtime, "three", execution_context=second.execution_context)

    turn = len(first.messages)
    assert [len(each.messages) for each in (second, third)] == [2 * turn, 3 * turn]
    assert second.messages[:turn] == first.messages
    assert third.messages[: 2 * turn] == second.messages
    assert len(a.model.asked[-1].messages) == 2 * turn + 1  # type: ignore[union-attr]
    strict(third.messages)


@pytest.mark.parametrize("fails", [False, True])
def test_a_flow_without_agents_keeps_the_conversation(fails: bool) -> None:
    def up(text: str) -> str:
        if fails:
            raise RunError("broken")
        return text.upper()

    first = finish(flow_runtime(Swarm([saying("a")])), "one")
    second = finish(flow_runtime(Swarm([up], name="silent")), "two", execution_context=first.execution_context)

    assert second.status == ("failed" if fails else "completed")
    assert second.execution_context.messages == first.execution_context.messages


# -- where a flow may stand


def test_a_flow_is_called_from_code_like_an_agent() -> None:
    async def main(input: Any, ctx: CallContext) -> list[str]:
        return [await ctx.call("pair", "one"), await ctx.call("pair", {"input": "two"})]

    a = saying("a")
    result = finish(flow_runtime(Swarm([a, saying("b")], name="pair"), entry=main))

    assert text_of(result) == ["b's", "b's"]
    assert asked(a) == ["one", "two"]
    assert result.messages == []
    assert [record.path for record in result.calls if record.path.endswith("/b")] == ["main/pair/2/b"] * 2


def test_a_flow_object_can_be_called_by_an_entry_but_only_inside_a_run() -> None:
    pair = Swarm([saying("a"), saying("b")], name="pair")

    async def main(input: Any, ctx: CallContext) -> list[str]:
        return [await pair("one"), await pair({"input": "two"})]

    result = finish(flow_runtime(pair, entry=main))

    assert text_of(result) == ["b's", "b's"]
    assert [record.path for record in result.calls if record.path.endswith("/b")] == ["main/pair/2/b"] * 2
    with pytest.raises(UsageError, match="outside a run"):
        asyncio.run(pair("three"))


def test_a_flow_is_a_tool_of_an_agent_and_needs_no_approval() -> None:
    flow = Swarm([saying("a"), saying("b")], name="pair", description="Does both.")
    boss = agent("boss", script(call("pair", {"input": "work"}, "c1"), "done"), toolsets=["pair"])

    runtime = flow_runtime(flow, boss, entry="boss", approvals="reject_all")
    result = finish(runtime)

    assert text_of(result) == "done"
    assert not result.denials
    offered = boss.model.asked[0].info.function_tools[0]  # type: ignore[union-attr]
    assert (offered.name, offered.description) == ("pair", "Does both.")
    assert "input" in offered.parameters_json_schema["properties"]
    assert [record.path for record in result.calls] == ["boss/pair/1/a", "boss/pair/2/b", "boss/pair"]


def test_a_failing_flow_is_a_failed_result_to_the_model_that_called_it() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    flow = Swarm([fails], name="pair")
    boss = agent("boss", script(call("pair", {"input": "work"}, "c1"), "went on"), toolsets=[flow])

    result = finish(flow_runtime(flow, boss, entry="boss"))

    assert text_of(result) == "went on"
    assert [error.agent_path for error in result.errors] == ["boss/pair/1/fails"]


# -- events


WHOLE = """
run_started article
call_started article
call_started article/1/a
model_request article/1/a
usage article/1/a
text_done article/1/a a's
call_finished article/1/a completed
call_started article/2/b
model_request article/2/b
usage article/2/b
text_done article/2/b b's
call_finished article/2/b completed
call_started article/2/c
model_request article/2/c
usage article/2/c
text_done article/2/c c's
call_finished article/2/c completed
call_started article/3/d
model_request article/3/d
usage article/3/d
text_done article/3/d d's
call_finished article/3/d completed
call_finished article completed
run_finished article completed
""".strip().splitlines()


def branch_by_branch(lines: list[str]) -> list[str]:
    """The lines, with those of parallel members sorted by member: how they interleave is a matter of time."""
    parallel = [number for number, line in enumerate(lines) if " article/2/" in line]
    first, last = parallel[0], parallel[-1] + 1
    return [*lines[:first], *sorted(lines[first:last], key=lambda line: line.split()[1]), *lines[last:]]


def test_run_and_stream_emit_the_same_events() -> None:
    flow = Swarm([saying(name) for name in "abcd"], flow="a >> (b | c) >> d", name="article")
    runtime = flow_runtime(flow)

    assert branch_by_branch(outline(runtime)) == WHOLE
    assert branch_by_branch(streamed(runtime)) == WHOLE


@pytest.mark.slow
def test_fifty_concurrent_runs_of_one_flow_are_independent() -> None:
    async def echo(messages: Any, info: Any) -> str:
        await asyncio.sleep(0)
        return str(messages[-1].parts[-1].content)

    runtime = flow_runtime(Swarm([agent(name, script(echo)) for name in "abc"], flow="a >> (b | c)", separator="|"))
    ear = heard(runtime)

    async def main() -> None:
        results = await asyncio.gather(*(runtime.run(f"n{number}") for number in range(50)))
        assert [result.output for result in results] == [f"n{number}|n{number}" for number in range(50)]
        for result in results:
            seqs = [event.seq for event in ear.events if event.run_id == result.run_id]
            assert seqs == list(range(len(seqs)))

    asyncio.run(main())

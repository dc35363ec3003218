"""Workflows: what each step gets, what comes out, and that members side by side really are."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_do import (
    AgentArgs,
    AgentSpec,
    CallContext,
    InputError,
    MemberFailure,
    ParallelGroup,
    RunError,
    SerialGroup,
    Swarm,
    SwarmNode,
    UsageError,
)
from tests.flows.flow_runs import finish, flow_runtime, outline, run_flow, streamed, text_of
from tests.support.history import strict
from tests.support.runs import agent, heard
from tests.support.scripted import call, script


class Facts(BaseModel):
    title: str
    points: list[str]


class Report(AgentArgs):
    title: str
    points: list[str]

    def prompt_messages(self) -> list[Any]:
        return [f"{self.title}: {', '.join(self.points)}"]


@dataclasses.dataclass
class Note:
    title: str
    points: list[str]


def saying(name: str, *turns: Any, **fields: Any) -> AgentSpec:
    return agent(name, script(*(turns or (f"{name}'s",))), **fields)


def asked(spec: AgentSpec) -> list[str]:
    """The prompts that an agent got."""
    return [item.prompt for item in spec.model.asked]  # type: ignore[union-attr]


# -- what passes from step to step


def test_each_step_reads_what_the_one_before_said_and_the_last_one_answers() -> None:
    a, b, c = saying("a"), saying("b"), saying("c")

    assert text_of(run_flow(Swarm([a, b, c]), "start")) == "c's"
    assert [asked(spec) for spec in (a, b, c)] == [["start"], ["a's"], ["b's"]]


def test_the_expression_not_the_list_says_the_order() -> None:
    a, b = saying("a"), saying("b")

    assert text_of(run_flow(Swarm([a, b], flow="b >> a"))) == "a's"
    assert asked(b) == ["go"]


def test_parallel_members_get_the_same_input_and_the_next_step_gets_both_outputs_in_declared_order() -> None:
    a, b, c, d = (saying(name) for name in "abcd")

    assert text_of(run_flow(Swarm([a, b, c, d], flow="a >> (c | b) >> d"))) == "d's"
    assert asked(c) == asked(b) == ["a's"]
    assert asked(d) == ["c's\n\nb's"]


def test_a_group_joins_with_its_separator_or_its_aggregate() -> None:
    a, b = saying("a"), saying("b")

    async def count(outputs: list[str]) -> dict[str, int]:
        return {"outputs": len(outputs)}

    assert text_of(run_flow(ParallelGroup("pair", [a, b], separator=" / "))) == "a's / b's"
    assert text_of(run_flow(ParallelGroup("pair", [a, b], aggregate=lambda outputs: outputs[::-1]))) == ["b's", "a's"]
    assert text_of(run_flow(ParallelGroup("pair", [a, b], aggregate=count))) == {"outputs": 2}


def test_an_aggregate_that_raises_is_named_with_its_line() -> None:
    def broken(outputs: list[str]) -> str:
        raise ValueError("no")

    result = run_flow(ParallelGroup("pair", [saying("a"), saying("b")], aggregate=broken))

    assert result.status == "failed"
    assert str(result.error) == "the aggregate of flow 'pair' raised ValueError: no"
    assert result.error.file == "test_workflow.py"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["model", "dict", "dataclass"])
def test_a_structured_output_arrives_as_fields_where_the_next_step_takes_fields(kind: str) -> None:
    facts = {"title": "Tea", "points": ["green", "hot"]}

    def research(text: str) -> Any:
        return {"model": Facts(**facts), "dict": dict(facts), "dataclass": Note(**facts)}[kind]

    writer = saying("writer", input_model=Report)

    assert text_of(run_flow(Swarm([research, writer]))) == "writer's"
    assert asked(writer) == ["Tea: green, hot"]


def test_a_structured_output_arrives_as_json_where_the_next_step_takes_text() -> None:
    researcher = agent("researcher", script(call("final_result", {"title": "Tea", "points": []})), output_type=Facts)
    writer = saying("writer")

    run_flow(Swarm([researcher, writer]))

    assert asked(writer) == ['{"title": "Tea", "points": []}']


def test_an_output_that_does_not_fit_the_next_step_ends_the_run_and_names_both() -> None:
    result = run_flow(Swarm([saying("a"), saying("b", input_model=Report)], name="pair"))

    assert result.status == "failed"
    assert isinstance(result.error, RunError)
    assert result.error.agent_path == "pair/2/b"
    assert "b can't take what the step before it returned" in result.error.message
    assert "title: Field required" in result.error.message


def test_a_flow_takes_what_its_first_step_takes() -> None:
    writer = saying("writer", input_model=Report)
    flow = Swarm([writer, saying("b")])

    with pytest.raises(InputError, match="title: Field required"):
        run_flow(flow, "text")
    assert text_of(run_flow(flow, {"title": "Tea", "points": ["hot"]})) == "b's"
    assert asked(writer) == ["Tea: hot"]


def test_functions_are_steps_whatever_their_shape() -> None:
    def shorten(text: str) -> str:
        return text[:2]

    def describe(facts: Facts) -> str:
        return f"{facts.title}!"

    async def make(input: str, ctx: CallContext) -> dict[str, Any]:
        return {"title": f"{input} at {ctx.path}", "points": []}

    def by_name(title: str, points: list[str]) -> Facts:
        return Facts(title=title, points=points)

    flow = Swarm([shorten, make, by_name, describe], name="lab")

    assert text_of(run_flow(flow, "abcdef")) == "ab at lab/2/make!"


def test_a_function_with_the_context_gets_the_input_its_annotation_says() -> None:
    seen: list[Any] = []

    async def text(input: str, ctx: CallContext) -> Facts:
        seen.append(input)
        return Facts(title="Tea", points=["hot"])

    async def fields(input: dict[str, Any], ctx: CallContext) -> Facts:
        seen.append(input)
        return Facts(**input)

    async def model(input: Report, ctx: CallContext) -> Note:
        seen.append(input)
        return Note(input.title, input.points)

    async def default(input, ctx) -> list[str]:  # type: ignore[no-untyped-def]
        seen.append(input.input)
        return ["a", "b"]

    async def listed(input: list[str], ctx: CallContext) -> str:
        seen.append(input)
        return "end"

    async def numbers(input: list[int], ctx: CallContext) -> str:
        return "never"

    facts = {"title": "Tea", "points": ["hot"]}
    assert text_of(run_flow(Swarm([text, fields, model, default, listed]))) == "end"
    assert seen == ["go", facts, Report(**facts), '{"title": "Tea", "points": ["hot"]}', ["a", "b"]]
    wrong = run_flow(Swarm([default, numbers]))
    assert "numbers can't take what the step before it returned" in str(wrong.error)


def test_a_function_step_that_raises_is_named_with_its_line() -> None:
    def broken(text: str) -> str:
        raise KeyError("gone")

    result = run_flow(Swarm([saying("a"), broken], name="pair"))

    assert (result.status, str(result.error)) == ("failed", "broken raised KeyError: 'gone'")
    assert result.error.file == "test_workflow.py"  # type: ignore[union-attr]


def test_no_member_can_change_what_another_one_gets() -> None:
    def make(text: str) -> dict[str, Any]:
        return {"notes": ["first"]}

    async def greedy(input: dict, ctx: CallContext) -> str:  # type: ignore[type-arg]
        input["notes"].append("mine")
        return "taken"

    async def modest(input: dict, ctx: CallContext) -> str:  # type: ignore[type-arg]
        await asyncio.sleep(0)
        return ",".join(input["notes"])

    assert text_of(run_flow(Swarm([make, greedy, modest], flow="make >> (greedy | modest)"))) == "taken\n\nfirst"


# -- side by side


def test_parallel_members_overlap() -> None:
    """Each waits for all: one after the other they would wait for ever."""
    barrier = asyncio.Barrier(3)

    def waiting(name: str) -> AgentSpec:
        async def turn(messages: Any, info: Any) -> str:
            await barrier.wait()
            return name

        return agent(name, script(turn))

    assert text_of(run_flow(ParallelGroup("all", [waiting(name) for name in "abc"]))) == "a\n\nb\n\nc"


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(4)))
def test_outputs_are_joined_in_declared_order_whoever_ends_first(order: list[int]) -> None:
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


def test_max_concurrency_is_how_many_run_at_once() -> None:
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

    flow = ParallelGroup("all", [member(name) for name in "abcdef"], separator="", max_concurrency=2)

    assert text_of(run_flow(flow)) == "abcdef"
    assert most == 2


def failing_and_waiting() -> tuple[Any, Any, list[str]]:
    """One member fails once the other one runs; the other waits for ever and says how it ended."""
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


def test_the_first_failure_cancels_the_others_and_is_what_is_reported() -> None:
    fails, waits, seen = failing_and_waiting()

    result = run_flow(ParallelGroup("all", [fails, waits], max_concurrency=None))

    assert (result.status, str(result.error)) == ("failed", "fails raised ValueError: broken")
    assert seen == ["cancelled"]
    assert {record.path: record.status for record in result.calls} == {
        "all/1/fails": "failed",
        "all/1/waits": "interrupted",
    }


def test_collect_lets_the_others_go_on_and_says_who_failed() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    seen: list[Any] = []
    flow = Swarm([fails, saying("b")], flow="fails | b", on_error="collect")
    judged = ParallelGroup(
        "judged", [fails, saying("b")], aggregate=lambda got: seen.extend(got) or "ok", on_error="collect"
    )

    result = run_flow(flow)
    assert text_of(result) == "fails failed: broken\n\nb's"
    assert [error.message for error in result.errors] == ["broken"]
    assert text_of(run_flow(judged)) == "ok"
    assert isinstance(seen[0], MemberFailure)
    assert (seen[0].name, seen[1]) == ("fails", "b's")


def test_collect_with_nothing_collected_is_a_failure() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    result = run_flow(ParallelGroup("all", [fails, SerialGroup("again", [fails])], on_error="collect"))

    assert (result.status, str(result.error)) == ("failed", "broken")


def test_a_member_that_cancels_itself_has_failed_and_the_run_ends_or_goes_on() -> None:
    async def gives_up(input: str, ctx: CallContext) -> str:
        raise asyncio.CancelledError

    strict_flow = ParallelGroup("all", [gives_up, saying("b")])
    lenient = ParallelGroup("all", [gives_up, saying("b")], on_error="collect")

    assert run_flow(strict_flow).status == "failed"
    assert text_of(run_flow(lenient)) == "gives_up failed: a member was cancelled\n\nb's"


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


# -- flows in flows


def test_groups_nest_to_any_depth_and_paths_tell_where_a_step_stands() -> None:
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


def test_one_swarm_under_two_names_is_two_steps_that_share_nothing() -> None:
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


def test_a_budget_holds_over_all_branches() -> None:
    members = [saying(name) for name in "abcd"]

    result = run_flow(ParallelGroup("all", members), budget={"requests": 3})

    assert (result.status, type(result.error).__name__) == ("limited", "BudgetError")
    assert result.usage.requests <= 3


def test_usage_steps_and_messages_are_those_of_all_steps() -> None:
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
    said = [part.content for message in result.messages for part in message.parts if part.part_kind == "text"]
    assert said == ["3", "b's", "c's"]


def test_an_early_end_keeps_what_the_steps_before_have_said() -> None:
    async def fails(input: str, ctx: CallContext) -> str:
        raise RunError("broken")

    result = run_flow(Swarm([saying("a"), fails]))

    assert [message.kind for message in result.messages] == ["request", "response"]
    assert result.error.messages == result.messages  # type: ignore[union-attr]
    assert result.output == "a's"


def test_the_conversation_goes_to_the_first_step_and_is_told_once() -> None:
    a, b = saying("a"), saying("b")
    runtime = flow_runtime(ParallelGroup("pair", [a, b]))

    first = finish(runtime, "one")
    second = finish(runtime, "two", execution_context=first.execution_context)

    assert len(a.model.asked[-1].messages) == len(b.model.asked[-1].messages) == 5  # type: ignore[union-attr]
    assert len(second.messages) == 8
    strict(second.messages)


# -- where a flow may stand


def test_a_flow_is_called_from_code_as_an_agent_is() -> None:
    async def main(input: Any, ctx: CallContext) -> list[str]:
        return [await ctx.call("pair", "one"), await ctx.call("pair", {"input": "two"})]

    a = saying("a")
    result = finish(flow_runtime(Swarm([a, saying("b")], name="pair"), entry=main))

    assert text_of(result) == ["b's", "b's"]
    assert asked(a) == ["one", "two"]
    assert result.messages == []
    assert [record.path for record in result.calls if record.path.endswith("/b")] == ["main/pair/2/b"] * 2


def test_a_flow_made_in_code_is_called_itself_by_an_entry_and_only_inside_a_run() -> None:
    pair = Swarm([saying("a"), saying("b")], name="pair")

    async def main(input: Any, ctx: CallContext) -> list[str]:
        return [await pair("one"), await pair({"input": "two"})]

    result = finish(flow_runtime(pair, entry=main))

    assert text_of(result) == ["b's", "b's"]
    assert [record.path for record in result.calls if record.path.endswith("/b")] == ["main/pair/2/b"] * 2
    with pytest.raises(UsageError, match="outside of a run"):
        asyncio.run(pair("three"))


def test_a_flow_is_a_tool_of_an_agent_and_runs_unasked() -> None:
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


# -- what is told


WHOLE = """
run_started article
call_started article
call_started article/1/a
text_done article/1/a a's
usage article/1/a
call_finished article/1/a completed
call_started article/2/b
call_started article/2/c
text_done article/2/b b's
usage article/2/b
text_done article/2/c c's
usage article/2/c
call_finished article/2/b completed
call_finished article/2/c completed
call_started article/3/d
text_done article/3/d d's
usage article/3/d
call_finished article/3/d completed
call_finished article completed
run_finished article completed
""".strip().splitlines()


def test_run_and_stream_tell_the_same_whole_story() -> None:
    flow = Swarm([saying(name) for name in "abcd"], flow="a >> (b | c) >> d", name="article")
    runtime = flow_runtime(flow)

    assert outline(runtime) == WHOLE
    assert streamed(runtime) == WHOLE


def test_fifty_runs_of_one_flow_at_once_see_nothing_of_each_other() -> None:
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

"""Several questions at once are asked in order, one at a time, once each, and withdrawn when their run ends."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from llm_do import ApprovalDecision, CallContext
from tests.runtime.approval.letters import RAN, send
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def crowd(k: int, *, same: bool) -> list[Any]:
    """A project with k agents, each making k calls at once."""
    workers = [
        agent(f"w{n}", script([call("send", to="x" if same else f"{n}-{m}") for m in range(k)], "ok"), tools=[send])
        for n in range(k)
    ]
    return [
        agent("main", script([call(worker.name, input="go") for worker in workers], "fin"), toolsets=workers),
        *workers,
    ]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_each_of_many_questions_is_asked_once_and_one_at_a_time(k: int) -> None:
    asked: list[str] = []
    open_now = most = 0

    async def person(request: Any) -> ApprovalDecision:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        asked.append(request.args["to"])
        await asyncio.sleep(0)
        open_now -= 1
        return ApprovalDecision("deny" if request.args["to"].endswith("1") else "once")

    runtime = runtime_of(crowd(k, same=False), approvals=person)
    ear = heard(runtime)
    result = carry_out(runtime)

    everything = sorted(f"{n}-{m}" for n in range(k) for m in range(k))
    assert sorted(asked) == everything
    assert most == 1
    assert sorted(RAN) == [one for one in everything if not one.endswith("1")]
    requested = [event.args["to"] for event in ear.of("approval_requested")]
    assert asked == requested
    assert result.output == "fin"
    for record in result.calls:
        strict(record.messages)
        results = [text for _, outcome, text in results_of(record.messages) if outcome == "success"]
        assert results == [f"sent to {record.path[-1]}-{m}" for m in range(k) if m != 1]


def test_identical_calls_are_one_question_per_agent() -> None:
    person = Answers(["all"])
    result = carry_out(runtime_of(crowd(3, same=True), approvals=person))

    assert sorted(request.agent_path for request in person.asked) == ["main/w0", "main/w1", "main/w2"]
    assert [request.identical for request in person.asked] == [3, 3, 3]
    assert RAN == ["x"] * 9
    assert len(result.approvals) == 9


def test_a_cancelled_run_withdraws_its_question_and_the_next_is_asked() -> None:
    async def scenario() -> None:
        shown: list[str] = []
        gone: list[str] = []
        first_shown = asyncio.Event()

        async def person(request: Any) -> ApprovalDecision:
            shown.append(request.args["to"])
            if request.args["to"] == "first":
                first_shown.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    gone.append("first")
                    raise
            return ApprovalDecision("once")

        specs = [agent(name, script([call("send", to=name)], "fin"), tools=[send]) for name in ("first", "second")]
        runtime = runtime_of(specs, approvals=person)
        first = asyncio.ensure_future(runtime.run("go"))
        await first_shown.wait()
        second = asyncio.ensure_future(runtime.run("go", entry="second"))
        while len(runtime.running) < 2 or len(shown) < 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        assert (await second).output == "fin"
        assert (shown, gone, RAN) == (["first", "second"], ["first"], ["second"])

    asyncio.run(scenario())


def test_a_shared_question_survives_one_of_its_two_waiters() -> None:
    shown, answer = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def person(request: Any) -> ApprovalDecision:
        asked.append(request.args["to"])
        shown.set()
        await answer.wait()
        return ApprovalDecision("once")

    async def main(input: Any, ctx: CallContext) -> str:
        first = asyncio.ensure_future(ctx.call("worker", "a"))
        await shown.wait()
        second = asyncio.ensure_future(ctx.call("worker", "b"))
        while len(ear.events) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        answer.set()
        return await second

    worker = agent("worker", script([call("send", to="x")], "ok"), tools=[send])
    runtime = runtime_of([worker], main, approvals=person)
    ear = heard(runtime, "approval_requested")
    result = carry_out(runtime)

    assert result.output == "ok"
    assert (asked, RAN) == (["x"], ["x"])


@pytest.mark.parametrize("pattern", ["main:send", None])
def test_a_queued_question_that_an_earlier_answer_covers_is_not_asked(pattern: str | None) -> None:
    person = Answers([ApprovalDecision("session", pattern=pattern), "deny"])
    calls = [call("send", to="ann"), call("send", to="bob" if pattern else "ann")]
    specs = [agent("main", script(calls, "fin"), tools=[send]), agent("second", script("x"), tools=[send])]

    async def scenario() -> list[str]:
        runtime = runtime_of(specs, approvals=person)
        ear = heard(runtime, "approval_resolved")
        await asyncio.gather(runtime.run("go"), runtime.run("go"))
        await runtime.aclose()
        return sorted(event.by for event in ear.events)

    assert asyncio.run(scenario()) == ["person"] + ["remembered"] * 3
    assert len(person.asked) == 1
    assert len(RAN) == 4


class Slow(FunctionToolset[Any]):
    """Describes one call only after the others have been described."""

    def __init__(self) -> None:
        super().__init__([send])
        self.others_described = threading.Event()

    def get_approval_description(self, name: str, args: dict[str, Any]) -> str:
        if args["to"] == "first":
            self.others_described.wait(0.2)
        else:
            self.others_described.set()
        return f"Send to {args['to']}"


def test_questions_come_in_call_order_however_long_a_toolset_takes_to_describe_them() -> None:
    person = Answers(["once"])
    calls = [call("send", to="first"), call("send", to="second"), call("send", to="third")]
    carry_out(runtime_of([agent("main", script(calls, "fin"), toolsets=[Slow()])], approvals=person))

    assert [request.description for request in person.asked] == ["Send to first", "Send to second", "Send to third"]


def test_questions_from_two_event_loops_have_distinct_ids() -> None:
    person = Answers(["deny"])
    runtime = runtime_of([agent("main", script([call("send", to="x")], "fin"), tools=[send])], approvals=person)
    for _ in range(2):
        asyncio.run(runtime.run("go"))

    assert len({request.id for request in person.asked}) == 2


def test_each_question_knows_how_many_wait() -> None:
    person = Answers(["once"])
    calls = [call("send", to=name) for name in ("first", "second", "third")]
    specs = [agent("main", script(calls, [call("send", to="last")], "fin"), toolsets=[Slow()])]
    carry_out(runtime_of(specs, approvals=person))

    assert [(each.number, each.total) for each in person.asked] == [(1, 3), (2, 3), (3, 3), (1, 1)]


def test_a_question_names_the_arguments_that_have_their_default_value() -> None:
    def post(text: str, tags: list[str] = [], loud: bool = False, count: int = 1, to: str | None = None) -> str:  # noqa: B006
        """Post."""
        return "posted"

    person = Answers(["once"])
    calls = [call("post", text="a"), call("post", text="b", tags=["x"], loud=False, count=2, to=None)]
    carry_out(runtime_of([agent("main", script(calls, "fin"), tools=[post])], approvals=person))

    assert [each.defaults for each in person.asked] == [("tags", "loud", "count", "to"), ("loud", "to")]

"""Warnings of a run: from threads, from calls that are abandoned, and in the result however it ends."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from pydantic_ai import RunContext

from llm_do import CallContext
from tests.support.nested import three_deep
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


def test_warnings_from_tools_in_threads_arrive_in_order_too() -> None:
    def noisy(ctx: RunContext[CallContext], n: int) -> int:
        for step in range(100):
            ctx.deps.warn(f"{n} at {step}")
        return n

    runtime = runtime_of([agent("main", script([call("noisy", n=n) for n in range(8)], "fin"), tools=[noisy])])

    async def watch() -> list[Any]:
        return [event async for event in runtime.stream("go")]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        events = asyncio.run(watch())
    finally:
        sys.setswitchinterval(interval)

    assert [event.seq for event in events] == list(range(len(events)))
    assert sum(event.type == "warning" for event in events) == 800
    for n in range(8):
        mine = [event.message for event in events if event.type == "warning" and event.message.startswith(f"{n} ")]
        assert mine == [f"{n} at {step}" for step in range(100)]


def test_an_abandoned_call_emits_no_more_warnings() -> None:
    started, over, warned = threading.Event(), threading.Event(), threading.Event()

    def slow(ctx: RunContext[CallContext]) -> str:
        started.set()
        over.wait(60)
        ctx.deps.warn("too late")
        warned.set()
        return ""

    runtime = runtime_of([agent("main", script(call("slow")), tools=[slow])])
    ear = heard(runtime)

    async def interrupted() -> None:
        task = asyncio.ensure_future(runtime.execute("go"))
        assert await asyncio.to_thread(started.wait, 60)
        runtime.interrupt()
        await task

    asyncio.run(interrupted())
    types = ear.types
    over.set()

    assert warned.wait(60)
    assert (ear.types, types[-1]) == (types, "run_failed")


def test_a_result_has_each_warning_of_the_run_once() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        ctx.warn("mind the gap")
        ctx.warn("mind the gap")
        await ctx.call("inner", "x")
        return "done"

    def lonely(ctx: RunContext[CallContext]) -> str:
        """Warn."""
        ctx.deps.warn("no server")
        return "ok"

    runtime = runtime_of([agent("inner", script(call("lonely"), "ok"), tools=[lonely])], main)
    ear = heard(runtime, "warning")
    result = carry_out(runtime)

    assert len(ear.events) == 3
    assert result.to_dict()["warnings"] == [
        {"message": "mind the gap", "agent_path": "main"},
        {"message": "no server", "agent_path": ear.events[-1].path},
    ]


def test_a_run_that_ends_early_has_its_warnings_too() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        ctx.warn("mind the gap")
        raise ValueError("no")

    assert [each.message for each in carry_out(runtime_of([], main)).warnings] == ["mind the gap"]
    assert carry_out(three_deep()).to_dict()["warnings"] == []

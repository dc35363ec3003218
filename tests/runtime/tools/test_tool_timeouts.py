"""Tools that take too long: ended if they are async, abandoned if they aren't."""

from __future__ import annotations

import asyncio
import threading
import time

from pydantic_ai import RunContext

from llm_do import tool
from llm_do.runtime.context.call_context import CallContext
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, heard, run_spec, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def wait_for_ever() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "no"


def test_an_async_tool_that_takes_too_long_is_timed_out() -> None:
    # The other tool has no timeout: its thread takes a while to start on a busy machine.
    @tool(name="add", timeout=60)
    def add_in_time(a: int, b: int) -> int:
        return a + b

    runtime = runtime_of(
        [
            agent(
                "main",
                script([call("wait_for_ever"), call("add", a=1, b=1)], "fin"),
                tools=[wait_for_ever, add_in_time],
            )
        ],
        tool_timeout=0.02,
    )
    ear = heard(runtime, "tool_result")

    result = carry_out(runtime)

    assert [text for _, _, text in results_of(result.messages)] == ["timed out after 0.02 s", "2"]
    assert {event.tool_name: event.status for event in ear.events} == {"wait_for_ever": "timed_out", "add": "success"}


def test_a_sync_tool_that_takes_too_long_is_abandoned_and_can_see_it() -> None:
    seen = threading.Event()
    release = threading.Event()

    def slow(ctx: RunContext[CallContext]) -> str:
        while not ctx.deps.cancelled:
            if release.wait(0.002):
                return "released"
        seen.set()
        return "too late"

    started = time.perf_counter()
    try:
        result = run_spec(agent("main", script([call("slow")], "fin"), tools=[slow], tool_timeout=0.3))
    finally:
        ended = seen.wait(30)
        release.set()

    assert ended
    assert time.perf_counter() - started < 30
    assert [text for _, _, text in results_of(result.messages)] == ["timed out after 0.3 s"]


def test_a_tools_own_timeout_overrides_the_agents() -> None:
    @tool(timeout=0.01)
    async def short() -> str:
        await asyncio.Event().wait()
        return ""

    result = run_spec(agent("main", script([call("short")], "fin"), tools=[short], tool_timeout=60))

    assert [text for _, _, text in results_of(result.messages)] == ["timed out after 0.01 s"]

"""Calls that the project's code begins and doesn't wait for end with the run."""

from __future__ import annotations

import asyncio
from typing import Any

from llm_do import CallContext, RunError
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script

EFFECTS: list[str] = []


async def slow() -> str:
    """Take long, and then have an effect."""
    await asyncio.sleep(0.2)
    EFFECTS.append("slow")
    return "late"


def run(entry: Any, *, waiting: float = 0.4) -> tuple[Any, Any]:
    """Run an entry in a loop that goes on afterwards, as that of a service does."""
    EFFECTS.clear()
    helper = agent("helper", script([call("slow")], "helped"), tools=[slow])

    async def serve() -> tuple[Any, Any]:
        async with runtime_of([helper], entry) as runtime:
            log = heard(runtime)
            result = await runtime.execute("x")
            await asyncio.sleep(waiting)
            return result, log

    return asyncio.run(serve())


def test_a_call_that_the_entry_leaves_running_is_cancelled_with_a_warning() -> None:
    tasks: list[Any] = []

    async def main(input: Any, ctx: CallContext) -> str:
        tasks.extend(asyncio.create_task(ctx.call("helper", text)) for text in "ab")
        await asyncio.sleep(0.05)
        return "early"

    result, log = run(main)

    assert (result.status, result.output) == ("completed", "early")
    assert [each.status for each in result.calls] == ["interrupted", "interrupted"]
    assert [each.message for each in result.warnings] == [
        "2 calls were still running when main returned; they were cancelled: await what you begin"
    ]
    assert log.types[-1] == "run_finished"
    assert "warning" in log.types
    assert result.usage.requests == 2
    assert EFFECTS == []
    assert all(task.cancelled() for task in tasks)


def test_when_one_gathered_call_fails_the_others_end_before_the_run_does() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await asyncio.gather(ctx.call("helper", "a"), ctx.call("nobody", "b"))

    result, log = run(main)

    assert result.status == "failed"
    assert result.error.message == "nothing is registered under the name 'nobody'"
    assert [each.status for each in result.calls] == ["interrupted"]
    assert result.warnings == []
    assert log.types[-1] == "run_failed"
    assert EFFECTS == []


def test_a_call_of_a_run_that_has_ended_is_refused() -> None:
    late: list[Any] = []

    async def later(ctx: CallContext) -> None:
        await asyncio.sleep(0.1)
        try:
            await ctx.call("helper", "x")
        except RunError as error:
            late.append((error.message, error.hint))

    async def main(input: Any, ctx: CallContext) -> str:
        late.append(asyncio.create_task(later(ctx)))
        return "done"

    result, log = run(main)

    assert (result.status, log.types[-1]) == ("completed", "run_finished")
    assert late[1:] == [("the run has ended", "Code makes its calls before its entry returns: await them there.")]
    assert EFFECTS == []


def test_a_call_that_is_left_and_awaited_elsewhere_in_the_run_is_no_left_call() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        task = asyncio.create_task(ctx.call("helper", "x"))
        await asyncio.sleep(0)
        return await task

    result, _ = run(main, waiting=0)

    assert (result.output, result.warnings, EFFECTS) == ("helped", [], ["slow"])


def test_cancelling_the_run_ends_what_it_has_left_running() -> None:
    EFFECTS.clear()
    helper = agent("helper", script([call("slow")], "helped"), tools=[slow])

    async def main(input: Any, ctx: CallContext) -> None:
        asyncio.create_task(ctx.call("helper", "x")).add_done_callback(lambda task: None)
        await asyncio.Event().wait()

    async def serve() -> list[str]:
        async with runtime_of([helper], main) as runtime:
            log = heard(runtime)
            running = asyncio.create_task(runtime.execute("x"))
            await asyncio.sleep(0.1)
            running.cancel()
            await asyncio.wait([running])
            await asyncio.sleep(0.3)
            return log.types

    assert asyncio.run(serve())[-1] in ("run_failed", "run_finished")
    assert EFFECTS == []


def test_a_run_without_left_calls_has_no_warning() -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return await asyncio.gather(ctx.call("helper", "a"), ctx.call("helper", "b"))

    helper = agent("helper", script("helped"))
    result = carry_out(runtime_of([helper], main))

    assert (result.output, result.warnings) == (["helped", "helped"], [])

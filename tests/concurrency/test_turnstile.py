"""A turnstile lets a limited number in, one at a time, whatever becomes of those who wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from llm_do import CallContext
from llm_do.concurrency.turnstile import Turnstile
from tests.support.loop_blocks import measured_blocks
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.support.tables import each_row


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_than_the_limit_are_inside(limit: int) -> None:
    inside: list[int] = []
    most = 0

    async def job(turnstile: Turnstile, number: int) -> int:
        nonlocal most
        async with turnstile:
            inside.append(number)
            most = max(most, len(inside))
            for _ in range(10):
                await asyncio.sleep(0)
            inside.remove(number)
        return number

    async def scenario() -> list[int]:
        turnstile = Turnstile(limit)
        return await asyncio.gather(*(job(turnstile, number) for number in range(20)))

    assert asyncio.run(scenario()) == list(range(20))
    assert most == limit


def test_only_one_comes_in_at_each_turn_of_the_loop() -> None:
    async def scenario() -> None:
        turnstile, turn = Turnstile(100), 0
        entered: list[int] = []

        async def job() -> None:
            async with turnstile:
                entered.append(turn)
                await asyncio.Event().wait()

        tasks = [asyncio.ensure_future(job()) for _ in range(10)]
        while len(entered) < 10:
            await asyncio.sleep(0)
            turn += 1
        assert len(set(entered)) == 10
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())


@each_row("turns", range(6))
def test_a_cancelled_job_makes_room_wherever_it_was(turns: int) -> None:
    async def scenario() -> None:
        turnstile = Turnstile(1)
        released = asyncio.Event()

        async def job() -> None:
            async with turnstile:
                await released.wait()

        tasks = [asyncio.ensure_future(job()) for _ in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks[:2]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        released.set()
        async with asyncio.timeout(10):
            await tasks[2]
            async with turnstile:
                pass

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "limit"), [(150, 1.5), pytest.param(2000, 1.5, marks=pytest.mark.slow)])
def test_many_agents_called_at_once_do_not_hold_up_the_loop(agents: int, limit: float) -> None:
    async def main(input: object, ctx: CallContext) -> int:
        return len(await asyncio.gather(*(ctx.call("worker", str(number)) for number in range(agents))))

    async def scenario() -> tuple[object, float]:
        runtime = runtime_of([agent("worker", script("done"))], main)
        async with measured_blocks() as blocks:
            result = await runtime.execute("go")
        return result.output, blocks.longest

    output, longest = asyncio.run(scenario())
    assert output == agents
    assert longest < limit  # without a turnstile, it grows with the number of agents: 15 s for 2,000 on a busy machine


def test_agents_of_agents_never_wait_for_each_other() -> None:
    async def main(input: object, ctx: CallContext) -> list[object]:
        return await asyncio.gather(*(ctx.call("middle", "x") for _ in range(4)))

    async def middle(input: object, ctx: CallContext) -> list[object]:
        return await asyncio.gather(*(ctx.call("worker", "x") for _ in range(4)))

    runtime = runtime_of([agent("worker", script("done"))], main, tools={"middle": middle}, max_concurrency=1)

    async def scenario() -> object:
        async with asyncio.timeout(60):
            return (await runtime.execute("go")).output

    assert asyncio.run(scenario()) == [["done"] * 4] * 4

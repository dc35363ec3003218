"""A stream is one run: leaving it ends the run, and `async with` waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from llm_do import AgentEntry, AgentSpec, Event, RunStream, Runtime, UsageError, run, tool
from llm_do.threads import memory_store
from tests.support.history import results_of
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script


class Desk:
    """A runtime whose agent waits in a tool, and cleans up slowly."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.cleaned = False

        @tool(approval="allow")
        async def wait() -> str:
            """Wait."""
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                self.cleaned = True
            return "never"

        self.spec = agent("main", script(call("wait"), "done"), tools=[wait])
        self.runtime: Runtime = runtime_of([self.spec], options={"store": memory_store()})

    async def until_waiting(self, events: AsyncIterator[Event]) -> None:
        """Iterate until the tool waits."""
        async for event in events:
            if event.type == "tool_call":
                await self.waiting.wait()
                return


def test_the_block_of_a_stream_ends_after_the_cleanup_of_its_run() -> None:
    async def main() -> None:
        desk = Desk()
        async with desk.runtime.stream("go", thread_id="t") as stream:
            await desk.until_waiting(aiter(stream))
        assert desk.cleaned
        assert stream.result is None

        after = await desk.runtime.run("again", thread_id="t", entry=AgentEntry(agent("main", script("done"))))
        assert ["interrupted" in result for result in results_of(after.messages)] == [True]

    asyncio.run(main())


def test_an_error_in_the_block_of_a_stream_ends_its_run_first() -> None:
    async def main() -> None:
        desk = Desk()

        async def fail() -> None:
            async with desk.runtime.stream("go") as stream:
                await desk.until_waiting(aiter(stream))
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert desk.cleaned

    asyncio.run(main())


def test_a_stream_of_run_can_be_closed_while_its_iterator_is_kept() -> None:
    async def main() -> None:
        desk = Desk()
        async with aclosing(run.stream(desk.spec, "go")) as stream:
            kept = aiter(stream)
            await desk.until_waiting(kept)
            assert not desk.cleaned
        assert desk.cleaned
        assert [event async for event in kept] == []

    asyncio.run(main())


def test_closing_a_stream_ends_the_iteration_of_another_task() -> None:
    async def main() -> list[str]:
        desk = Desk()
        stream = desk.runtime.stream("go")

        async def watch() -> list[str]:
            return [event.type async for event in stream]

        watching = asyncio.create_task(watch())
        await desk.waiting.wait()
        await stream.aclose()
        await stream.aclose()
        assert desk.cleaned
        return await watching

    seen = asyncio.run(main())

    assert seen[0] == "run_started"
    assert "run_finished" not in seen


@pytest.mark.parametrize("how", ["iterated", "left", "iterating", "closed"])
def test_a_stream_runs_once(how: str) -> None:
    runs: list[Any] = []

    async def main() -> None:
        spec = AgentSpec("main", model=script("one", "two"))
        runtime = runtime_of([spec])
        runtime.on("run_started", runs.append)
        stream: RunStream = runtime.stream("go")
        if how == "iterated":
            assert [event.type async for event in stream][-1] == "run_finished"
        elif how == "left":
            async for _ in stream:
                break
        elif how == "iterating":
            await anext(aiter(stream))
        else:
            await stream.aclose()

        with pytest.raises(UsageError, match="a stream is one run, and this one has been iterated over or closed"):
            await anext(aiter(stream))

    asyncio.run(main())

    assert len(runs) == (0 if how == "closed" else 1)


class Held:
    """A resource of a session."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


def test_a_runtime_is_closed_at_the_end_of_its_block() -> None:
    async def main() -> None:
        async with runtime_of([agent("main", script("done"))]) as runtime:
            held = runtime.resources.get("held", Held)
            await runtime.run("go")
            assert not held.closed
        assert held.closed

    asyncio.run(main())

"""A long run keeps only what its result holds, and a session keeps nothing from finished runs."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import CallContext, Runtime, tool
from llm_do.runtime.record.events.event_base import EventBase
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call


@tool(approval="allow")
async def add(number: int) -> int:
    """Add one."""
    return number + 1


async def adding(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the tool, then answer, without keeping any request."""
    return ModelResponse([call("add", number=1) if len(messages) == 1 else TextPart("done")])


async def main(input: Any, ctx: CallContext) -> None:
    """Call the agent as many times as the input says."""
    for _ in range(int(input.input)):
        await ctx.call("worker", "go")


def listening() -> Runtime:
    """A runtime with a subscriber that keeps nothing."""
    runtime = runtime_of([agent("worker", FunctionModel(adding), tools=[add])], main, max_steps=100_000)
    runtime.on(None, lambda event: None)
    return runtime


def in_use(runtime: Runtime, times: int) -> tuple[int, int]:
    """The bytes that one more run of this many calls uses, with its result alive and after it is freed."""

    async def measured() -> tuple[int, int]:
        tracemalloc.start()
        try:
            for _ in range(2):
                await runtime.run(str(times))
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            result = await runtime.run(str(times))
            gc.collect()
            with_result, _ = tracemalloc.get_traced_memory()
            assert len(result.calls) == times
            del result
            gc.collect()
            afterwards, _ = tracemalloc.get_traced_memory()
            return with_result - before, afterwards - before
        finally:
            tracemalloc.stop()

    return asyncio.run(measured())


@pytest.mark.slow
def test_a_runs_memory_grows_only_with_its_calls() -> None:
    few, many = in_use(listening(), 10)[0], in_use(listening(), 30)[0]

    assert many < few * 3.3
    assert many / 30 < 10_000


@pytest.mark.slow
def test_a_session_keeps_almost_nothing_of_a_run_whose_result_is_freed() -> None:
    with_result, afterwards = in_use(listening(), 20)

    assert with_result > 10 * afterwards


@pytest.mark.slow
def test_events_are_not_retained() -> None:
    runtime = listening()
    heard: list[int] = []
    runtime.on(None, lambda event: heard.append(event.seq))

    async def kept() -> list[Any]:
        result = await runtime.run("10")
        gc.collect()
        return [item for item in gc.get_objects() if isinstance(item, EventBase) and item.run_id == result.run_id]

    assert (asyncio.run(kept()), len(heard) > 50) == ([], True)

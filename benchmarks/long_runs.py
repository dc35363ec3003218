"""Long runs against bare PydanticAI, whose cost of a step grows with the history: a function model, and over HTTP."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.in_process import add
from benchmarks.measure import Figure
from benchmarks.server import serving
from llm_do import AgentSpec, Project, Runtime
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry

STEPS = 1_000
OVER_HTTP = 400
"""Steps over HTTP: a thousand would take bare PydanticAI some minutes."""

WARM_UP = 10


def model(steps: int) -> FunctionModel:
    """Create a model that calls a tool in each step but the last, and remembers nothing itself."""
    done = 0

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal done
        done += 1
        if done % steps == 0:
            return ModelResponse([TextPart("Done, thank you.")])
        return ModelResponse([ToolCallPart("add", {"a": done, "b": 1})])

    return FunctionModel(answer)


def main() -> list[Figure]:
    """Measure ours before and after the other one, which takes long enough."""
    figures = [compared("a function model", model, STEPS, 0.25)]
    with serving() as url:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "benchmark"
        return [*figures, compared("HTTP", lambda steps: f"openai-chat:tools-{steps - 1}", OVER_HTTP, 0.12)]


def compared(name: str, made: Callable[[int], Any], steps: int, target: float) -> Figure:
    """Measure one run of this many steps on both sides."""
    sides = (ours, bare)
    for side in sides:
        asyncio.run(_seconds(side(made(WARM_UP), WARM_UP)))
    before, other, after = (asyncio.run(_seconds(side(made(steps), steps))) for side in (ours, bare, ours))
    one = (before + after) / 2
    return Figure(f"{steps} steps, {name} / bare", one / other, target, detail=f"{one:.1f} s against {other:.1f} s")


def ours(model: Any, steps: int) -> Callable[[], Coroutine[Any, Any, object]]:
    """Return a run of an agent of ours."""
    spec = AgentSpec("main", model=model, instructions="Be brief.", tools=[add], max_steps=steps + 1)
    registry = Registry({"main": Registered("main", "agent", spec)})
    runtime = Runtime(Project(Path.cwd(), EntrySpec("agent", "main"), registry))
    return lambda: runtime.run("x")


def bare(model: Any, steps: int) -> Callable[[], Coroutine[Any, Any, object]]:
    """Return a run of the same agent on bare PydanticAI."""
    agent = Agent(model, instructions="Be brief.", tools=[add])
    return lambda: agent.run("x", usage_limits=UsageLimits(request_limit=steps + 1))


async def _seconds(work: Callable[[], Coroutine[Any, Any, object]]) -> float:
    begun = time.process_time()
    await work()
    return time.process_time() - begun

"""Runs in one process against bare PydanticAI with the same model class, tools and server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, as_a_service, interleaved
from benchmarks.server import serving
from llm_do import AgentSpec, Project, Runtime, tool
from llm_do.policy.rules import build_policy
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry

Work = Callable[[], Coroutine[Any, Any, object]]


@tool(approval="allow")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def tools() -> list[Callable[..., Any]]:
    """Create eight tools, of which one is called, as for an ordinary agent."""

    def other(number: int) -> Callable[..., Any]:
        async def unused(text: str, count: int = 1) -> str:
            """Do something else with a text."""
            return text * count

        unused.__name__ = f"other_{number}"
        return unused

    return [add, *(other(number) for number in range(7))]


def runtime(model: str) -> Runtime:
    """Create a runtime for one agent with eight tools."""
    spec = AgentSpec("main", model=f"openai-chat:{model}", instructions="Be brief.", tools=tools(), max_steps=100)
    registry = Registry({"main": Registered("main", "agent", spec)})
    return Runtime(Project(Path.cwd(), EntrySpec("agent", "main"), registry))


def bare(model: str) -> Any:
    """Create the same agent on bare PydanticAI."""
    from pydantic_ai import Agent

    return Agent(f"openai-chat:{model}", instructions="Be brief.", tools=tools())


def times(count: int, work: Callable[[], Coroutine[Any, Any, object]]) -> Work:
    """Repeat work sequentially."""

    async def repeated() -> None:
        for _ in range(count):
            await work()

    return repeated


def at_once(count: int, work: Callable[[], Coroutine[Any, Any, object]]) -> Work:
    """Repeat work concurrently."""

    async def gathered() -> None:
        await asyncio.gather(*(work() for _ in range(count)))

    return gathered


def main() -> list[Figure]:
    """Measure runs without tools, tool-call round trips, approvals and concurrent runs."""
    with serving() as url:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "benchmark"
        return [no_tools(), round_trips(), approvals(), *many()]


def no_tools() -> Figure:
    """One request, eight tools offered, none called."""
    ours, reference = runtime("text"), bare("text")
    one, other = interleaved(times(20, lambda: ours.run("x")), times(20, lambda: reference.run("x")))
    detail = f"{one * 50:.2f} ms against {other * 50:.2f} ms a run"
    return Figure("run in process, no tools / bare", one / other, 1.1, detail=detail)


def round_trips() -> Figure:
    """Ten rounds of one tool call, with a subscriber to the events."""
    ours, reference = runtime("tools-10"), bare("tools-10")
    ours.on(None, lambda _: None)
    one, other = interleaved(times(4, lambda: ours.run("x")), times(4, lambda: reference.run("x")))
    detail = f"{one / 44 * 1000:.2f} ms against {other / 44 * 1000:.2f} ms a request"
    return Figure("tool-call round trip / bare", one / other, 1.05, detail=detail)


def approvals() -> Figure:
    """The same with fifty rules against none."""
    policy, _ = build_policy({"allow": [f"tool_{number}(x=*)" for number in range(50)]})
    without = runtime("tools-10")
    with_rules = Runtime(replace(runtime("tools-10").project, policy=policy))
    one, other = interleaved(times(4, lambda: with_rules.run("x")), times(4, lambda: without.run("x")), rounds=9)
    return Figure("fifty rules / none", one / other, 1.03)


def many() -> list[Figure]:
    """Fifty and five hundred concurrent runs, and how the cost of a run grows with their number in a service."""
    figures: list[Figure] = []
    for count, target in ((50, 1.1), (500, 0.8)):
        ours, reference = runtime("text"), bare("text")
        one, other = interleaved(
            at_once(count, lambda ours=ours: ours.run("x")),
            at_once(count, lambda reference=reference: reference.run("x")),
            rounds=9 if count < 100 else 5,
        )
        detail = f"{one / count * 1000:.2f} ms against {other / count * 1000:.2f} ms a run"
        figures.append(Figure(f"{count} concurrent runs / bare", one / other, target, detail=detail))
    with as_a_service():
        session = runtime("text")
        few, more = interleaved(at_once(50, lambda: session.run("x")), at_once(500, lambda: session.run("x")), rounds=5)
    detail = f"{more * 2:.2f} ms against {few * 20:.2f} ms a run"
    return [*figures, Figure("a run among 500 / a run among 50", more / few / 10, 1.3, detail=detail)]

"""Flows against bare PydanticAI with the same model class and server: parallel, chained, streamed, concurrent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext

from benchmarks.in_process import at_once
from benchmarks.measure import Figure, as_a_service, interleaved
from benchmarks.server import serving
from llm_do import AgentSpec, Project, Runtime, Swarm
from llm_do.flows import FlowSpec, ParallelGroup
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry

IDEAL = 0.2
"""Ideal wall time in seconds of eight parallel children of 200 ms."""


def agent(name: str, model: str, **fields: Any) -> AgentSpec:
    """Create an llm-do agent."""
    return AgentSpec(name, model=f"openai-chat:{model}", instructions="Be brief.", description="Does it.", **fields)


def bare(model: str, **fields: Any) -> Agent[None, str]:
    """Create the same agent on bare PydanticAI."""
    return Agent(f"openai-chat:{model}", instructions="Be brief.", **fields)


def runtime(item: AgentSpec | FlowSpec, *others: AgentSpec) -> Runtime:
    """Create a runtime for an agent or a flow, with unlimited concurrent requests."""
    kind = "flow" if isinstance(item, FlowSpec) else "agent"
    names = {item.name: Registered(item.name, kind, item)}
    names |= {spec.name: Registered(spec.name, "agent", spec) for spec in others}
    return Runtime(Project(Path.cwd(), EntrySpec(kind, item.name), Registry(names)), approvals="approve_all")


def main() -> list[Figure]:
    """Measure flows."""
    with serving() as url:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "benchmark"
        return [children_of_an_agent(), members_of_a_group(), chain(), streaming(), many()]


def children_of_an_agent() -> Figure:
    """An agent that calls eight others of 200 ms each in one response: wall time."""
    children = [agent(f"child_{number}", "slow-200") for number in range(8)]
    ours = runtime(agent("parent", "children-8-200", toolsets=children), *children)
    reference = bare("children-8-200", tools=[_child(number) for number in range(8)])
    return _walls("8 children of an agent, wall / bare", lambda: ours.run("x"), lambda: reference.run("x"))


def members_of_a_group() -> Figure:
    """Eight parallel members of 200 ms each against a gather of eight bare agents: wall time."""
    ours = runtime(ParallelGroup("group", [agent(f"m{number}", "slow-200") for number in range(8)]))
    members = [bare("slow-200") for _ in range(8)]

    async def gathered() -> None:
        await asyncio.gather(*(member.run("x") for member in members))

    return _walls("8 parallel members, wall / bare", lambda: ours.run("x"), gathered)


def chain() -> Figure:
    """Fifty steps, each with the previous one's output as its input."""
    ours = runtime(Swarm([agent(f"s{number}", "text") for number in range(50)], name="chain"))
    steps = [bare("text") for _ in range(50)]

    async def called() -> None:
        output = "x"
        for step in steps:
            output = (await step.run(output)).output

    one, other = interleaved(lambda: ours.run("x"), called, rounds=5)
    detail = f"{one / 50 * 1000:.2f} ms against {other / 50 * 1000:.2f} ms a step"
    return Figure("chain of 50 steps / bare calls", one / other, 1.1, detail=detail)


def streaming() -> Figure:
    """A streamed text of 5,000 chunks."""
    ours, reference = runtime(Swarm([agent("s", "stream-5000")], name="one")), bare("stream-5000")

    async def streamed() -> None:
        async for _ in ours.stream("x"):
            pass

    async def bare_stream() -> None:
        async with reference.run_stream("x") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pass

    one, other = interleaved(streamed, bare_stream, rounds=5)
    return Figure("5,000 chunks streamed / bare", one / other, 1.0, detail=f"{one:.2f} s against {other:.2f} s")


def many() -> Figure:
    """Five hundred concurrent runs of a flow of two steps."""
    ours = runtime(Swarm([agent("a", "text"), agent("b", "text")], name="pair"))
    first, second = bare("text"), bare("text")

    async def both() -> None:
        await second.run((await first.run("x")).output)

    with as_a_service():
        one, other = interleaved(at_once(500, lambda: ours.run("x")), at_once(500, both), rounds=5)
    detail = f"{one / 500 * 1000:.2f} ms against {other / 500 * 1000:.2f} ms a run"
    return Figure("500 concurrent flow runs / bare", one / other, 0.8, detail=detail)


def _child(number: int) -> Callable[..., Awaitable[str]]:
    child = bare("slow-200")

    async def call(ctx: RunContext[None], input: str) -> str:
        """Ask the child."""
        return (await child.run(input)).output

    call.__name__ = f"child_{number}"
    return call


def _walls(name: str, ours: Any, reference: Any) -> Figure:
    """Measure both against the ideal time, and so against each other."""
    one, other = interleaved(ours, reference, rounds=5, clock=time.perf_counter)
    return Figure(name, one / other, 1.15, detail=f"{one / IDEAL:.3f} and {other / IDEAL:.3f} of the ideal")

"""Memory: runs in flight, a run of ten thousand steps, and the events that a subscriber keeps.

Each is measured by the peak memory of a separate process: the full peak to compare both sides with their imports, or
the difference between two sizes for the cost of one more item, which cancels out the imports.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.in_process import bare, runtime
from benchmarks.measure import Figure, environment, python
from benchmarks.server import serving

IN_FLIGHT = (50, 500)
STEPS = (1_000, 10_000)
EVENTS, OWN_EVENTS = 5, 4
"""Events of each step (call started and finished, request, usage, text), and of the run with its entry."""

SIDES = ("ours", "bare")

Pair = tuple[float, float]


def main() -> list[Figure]:
    """Measure both sides alternately, each in its own processes."""
    with serving() as url:
        fewer, more = (peaks("flight", count, url, rounds=3) for count in IN_FLIGHT)
    in_flight = per_item(fewer, more, IN_FLIGHT)
    few, many = (peaks("steps", count) for count in STEPS)
    step = per_item(few, many, STEPS)
    heard, unheard = peaks("steps", STEPS[0], sides=("kept", "ours"))
    return [
        Figure(
            f"{IN_FLIGHT[0]} concurrent runs, memory / bare",
            fewer[0] / fewer[1],
            1.15,
            detail=f"{fewer[0] / 1024:.0f} MB against {fewer[1] / 1024:.0f} MB",
        ),
        Figure(
            "one more run in flight, memory / bare",
            in_flight[0] / in_flight[1],
            detail=f"{in_flight[0]:.0f} KB against {in_flight[1]:.0f} KB",
        ),
        Figure(
            f"a step of {STEPS[1]}, memory / its messages alone",
            step[0] / step[1],
            detail=f"{step[0]:.2f} KB against {step[1]:.2f} KB; {many[0] / 1024:.0f} MB at the end",
        ),
        Figure("an event that a subscriber keeps", (heard - unheard) / (EVENTS * STEPS[0] + OWN_EVENTS), unit=" KB"),
    ]


def peaks(what: str, count: int, url: str = "", sides: tuple[str, str] = SIDES, rounds: int = 1) -> Pair:
    """Measure the median peak memory of both sides' processes in KB, run alternately."""
    found: list[list[int]] = [[], []]
    for _ in range(rounds):
        for side, name in enumerate(sides):
            done = subprocess.run(
                [python(), "-m", "benchmarks.memory", what, name, str(count)],
                env={**environment(), "OPENAI_BASE_URL": url},
                capture_output=True,
                text=True,
                check=True,
            )
            found[side].append(int(done.stdout))
    return statistics.median(found[0]), statistics.median(found[1])


def per_item(few: Pair, many: Pair, counts: tuple[int, int]) -> Pair:
    """Compute the cost of one more item on each side."""
    return (many[0] - few[0]) / (counts[1] - counts[0]), (many[1] - few[1]) / (counts[1] - counts[0])


def peak() -> int:
    """Return this process's peak memory in KB, without its parent's where the two can be separated."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(status.partition("VmHWM:")[2].split()[0])


async def flight(side: str, count: int) -> None:
    """Run this many concurrent runs that wait for their model."""
    run: Callable[[str], Awaitable[Any]] = (runtime if side == "ours" else bare)("slow-1500").run
    await run("x")
    await asyncio.gather(*(run("x") for _ in range(count)))


async def steps(side: str, count: int) -> object:
    """Run an entry that calls an agent this many times; the bare side keeps the messages of as many runs."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from llm_do import AgentSpec, CallContext, Project, Runtime
    from llm_do.project.project import EntrySpec
    from llm_do.project.registry import Registered, Registry

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("Done, thank you.")])

    async def entry(input: Any, ctx: CallContext) -> None:
        for _ in range(count):
            await ctx.call("worker", "x")

    model = FunctionModel(answer)
    if side == "bare":
        agent = Agent(model, instructions="Be brief.")
        return [(await agent.run("x")).all_messages() for _ in range(count)]
    spec = AgentSpec("worker", model=model, instructions="Be brief.")
    registry = Registry({"worker": Registered("worker", "agent", spec)})
    session = Runtime(Project(Path.cwd(), EntrySpec("function", "main", entry), registry))
    kept: list[object] = []
    if side == "kept":
        session.on(None, kept.append)
    result = await session.run("x")
    assert result.status == "completed", result.error
    assert len(kept) in (0, EVENTS * count + OWN_EVENTS), len(kept)
    return result, kept


if __name__ == "__main__":
    work = {"flight": flight, "steps": steps}[sys.argv[1]]
    held = asyncio.run(work(sys.argv[2], int(sys.argv[3])))
    print(peak(), flush=True)
    os._exit(0)

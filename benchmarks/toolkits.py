"""The cost of toolkits, in process and without a network.

A run's copy of a context by its size, a step with a hundred gated tools against the same without gates, and five
hundred concurrent runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.measure import Figure, typical
from llm_do import AgentSpec, Project, Runtime, Toolkit
from llm_do.project.gates import Gate
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry

FEW, MANY = 10, 100_000
"""The number of keys in a context."""
TOOLS = 100
STEPS = 20
RUNS = 500
ROUNDS = 11
TARGET_COPY = 2.0
TARGET_STEP = 1.2


def micros(action: Callable[[], object], *, times: int = 200) -> float:
    """Return the processor time of an action in microseconds."""
    start = time.process_time_ns()
    for _ in range(times):
        action()
    return (time.process_time_ns() - start) / times / 1000


def copying(keys: int) -> Callable[[], object]:
    """Return what copies a toolkit's state with this many keys and writes to it once."""
    kit = Toolkit("kit", context={f"key{number}": number for number in range(keys)})
    return lambda: kit.machine.snapshot().context.copy().set("key1", 2)


def stepping(steps: int) -> FunctionModel:
    """Create a model that calls one tool this many times, then answers."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(message.kind == "response" for message in messages)
        if done == steps:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("tool_0", {"value": done})])

    return FunctionModel(answer)


def runtime_of(spec: AgentSpec) -> Runtime:
    """Create a runtime for one agent that approves everything."""
    registry = Registry({spec.name: Registered(spec.name, "agent", spec)})
    return Runtime(Project(Path.cwd(), EntrySpec("agent", spec.name), registry), approvals="approve_all")


async def work(value: int) -> int:
    """Return the value."""
    return value


def tools() -> list[Any]:
    """Create a hundred async functions of one parameter."""
    made: list[Any] = []
    for number in range(TOOLS):

        async def tool(value: int) -> int:
            """Return the value."""
            return value

        tool.__name__ = f"tool_{number}"
        made.append(tool)
    return made


def specs() -> dict[str, AgentSpec]:
    """Declare the same agent without gates, with a gate on every tool, and with a toolkit."""
    common: Mapping[str, Any] = {"max_steps": STEPS + 1, "loop_threshold": 0}
    gates = {f"tool_{number}": Gate(forbids=("never",), enables=("used",)) for number in range(TOOLS)}
    kit = Toolkit("kit", context={f"key{number}": number for number in range(1_000)})
    for number in range(TOOLS):
        kit.tool(name=f"tool_{number}", forbidden_states=["never"], enables_states=["used"])(work)
    return {
        "plain": AgentSpec("main", model=stepping(STEPS), tools=tools(), **common),
        "states": AgentSpec("main", model=stepping(STEPS), tools=tools(), states=gates, **common),
        "toolkit": AgentSpec("main", model=stepping(STEPS), toolsets=[kit], **common),
    }


def steps() -> dict[str, tuple[float, float]]:
    """Measure the processor milliseconds of a step with gates, each with those of a plain step right after it."""
    runtimes = {name: runtime_of(spec) for name, spec in specs().items()}
    plain = runtimes.pop("plain")

    def spent(runtime: Runtime) -> float:
        start = time.process_time_ns()
        asyncio.run(runtime.run("go"))
        return (time.process_time_ns() - start) / 1e6 / STEPS

    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in runtimes}
    for _ in range(ROUNDS + 1):
        for name, runtime in runtimes.items():
            pairs[name].append((spent(runtime), spent(plain)))
    return {name: typical(measured[1:]) for name, measured in pairs.items()}


def crowd() -> tuple[float, int]:
    """Run one toolkit in five hundred concurrent runs; return milliseconds per run and how many saw another's state."""
    kit = Toolkit("kit", context={"sum": 0, **{f"key{number}": number for number in range(10_000)}})

    @kit.tool(name="tool_0")
    async def add(ctx: Any, value: int) -> Any:
        """Add."""
        return "added", {"sum": ctx.state["sum"] + value}

    runtime = runtime_of(AgentSpec("main", model=stepping(3), toolsets=[kit], loop_threshold=0))

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(runtime.run("go") for _ in range(RUNS)))

    start = time.process_time_ns()
    results = asyncio.run(all_of_them())
    spent = (time.process_time_ns() - start) / 1e6
    return spent / RUNS, sum(result.toolkits["kit"].context["sum"] != 3 for result in results)


def main() -> list[Figure]:
    """Measure copies by size, steps by kind, and concurrent runs."""
    copies = copying(MANY), copying(FEW)
    many, few = typical([(micros(copies[0]), micros(copies[1])) for _ in range(10 * ROUNDS)])
    copied = f"{many:.2f} against {few:.2f} us"
    each, wrong = crowd()
    return [
        Figure(f"copy of {MANY} keys / of {FEW}", many / few, TARGET_COPY, detail=copied),
        *(
            Figure(f"step of a tool with {name} / plain", one / other, TARGET_STEP, detail=f"{one:.3f} ms")
            for name, (one, other) in steps().items()
        ),
        Figure(f"{RUNS} runs of one toolkit at once, each", each, unit=" ms"),
        Figure("runs that saw another's state", wrong, 0, unit="", detail=f"of {RUNS}"),
    ]

"""Threads and the journal: the cost of continuing a long thread, of recording, and of concurrent threads."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.in_process import at_once, bare, runtime, times, tools
from benchmarks.measure import Figure, interleaved
from benchmarks.server import serving
from llm_do import Runtime
from llm_do.runtime.steps.rehearsal import Rehearsal
from llm_do.threads import ConversationManager, PostgresStore, SqliteStore, StateManager, ThreadConfig, ThreadStore
from tests.support.postgres import missing, start_server, stop_server

LONG, SHORT = 100_000, 100

REPLAYS, STEPS = 20, 21
"""Runs that are replayed, and the steps of each: eleven requests and ten tool calls."""


def main() -> list[Figure]:
    """Measure continuing, appending, recording, fifty threads at once, durable runs, and their replay."""
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "benchmark"
        place = Path(folder)
        measured = [*lengths(place), *recording(place), *fifty(place), *durable(place), replay(place)]
        return [*measured, *database(place)]


def recorded(model: str, store: ThreadStore, *, durable: bool = False) -> Runtime:
    """Create the benchmarks' runtime with recording on."""
    base = runtime(model)
    return Runtime(base.project, config=replace(base.config, record=True, store=store, durable=durable))


def turns(count: int) -> list[ModelMessage]:
    """Build a conversation of this many messages."""
    made: list[ModelMessage] = []
    for number in range(count // 2):
        made.append(ModelRequest([UserPromptPart(f"question {number} " + "x" * 80)]))
        made.append(ModelResponse([TextPart(f"answer {number} " + "y" * 200)]))
    return made


def lengths(folder: Path) -> list[Figure]:
    """Continue a long thread and a short one with a window of twenty messages, and append to both."""
    store = SqliteStore(folder / "lengths.db")
    manager = ConversationManager(store)

    async def prepare() -> None:
        for name, count in (("long", LONG), ("short", SHORT)):
            await manager.add_messages(name, turns(count))
            await StateManager(store).set_thread_config(name, ThreadConfig(history_limit=20))

    asyncio.run(prepare())
    ours = recorded("text", store)

    def continued(name: str) -> Callable[[], Coroutine[Any, Any, object]]:
        return times(10, lambda: ours.run("x", thread_id=name))

    def appended(name: str) -> Callable[[], Coroutine[Any, Any, object]]:
        return times(10, lambda: manager.add_messages(name, turns(2)))

    long, short = interleaved(continued("long"), continued("short"))
    more, less = interleaved(appended("long"), appended("short"))
    return [
        Figure(
            f"a turn on a thread of {LONG} messages / of {SHORT}",
            long / short,
            1.15,
            detail=f"{long * 100:.2f} ms against {short * 100:.2f} ms a turn",
        ),
        Figure(
            f"appending to a thread of {LONG} messages / of {SHORT}",
            more / less,
            1.15,
            detail=f"{more * 100:.2f} ms against {less * 100:.2f} ms for two messages",
        ),
    ]


def recording(folder: Path) -> list[Figure]:
    """Tool-call round trips with the journal on, against bare PydanticAI; and with a thread as well."""
    store = SqliteStore(folder / "recording.db")
    reference, ours = bare("tools-10"), recorded("tools-10", store)
    number = iter(range(1_000_000))
    one, other = interleaved(times(4, lambda: ours.run("x")), times(4, lambda: reference.run("x")))
    threads, again = interleaved(
        times(4, lambda: ours.run("x", thread_id=f"t{next(number)}")), times(4, lambda: reference.run("x"))
    )
    return [
        Figure(
            "tool-call round trip with the journal / bare",
            one / other,
            1.05,
            detail=f"{one / 44 * 1000:.2f} ms against {other / 44 * 1000:.2f} ms a request",
        ),
        Figure(
            "tool-call round trip on a thread / bare",
            threads / again,
            1.15,
            detail=f"{threads / 44 * 1000:.2f} ms against {again / 44 * 1000:.2f} ms a request",
        ),
    ]


def fifty(folder: Path) -> Iterator[Figure]:
    """Fifty runs at once, on threads and only recorded, against the same runs unrecorded: wall time."""
    store = SqliteStore(folder / "fifty.db")
    ours, plain = recorded("text", store), runtime("text")
    number = iter(range(1_000_000))
    for name, start in (
        ("50 threads at once on SQLite / not recorded", lambda: ours.run("x", thread_id=f"t{next(number)}")),
        ("50 recorded runs at once / not recorded", lambda: ours.run("x")),
    ):
        one, other = interleaved(
            at_once(50, start), at_once(50, lambda: plain.run("x")), rounds=15, clock=time.perf_counter
        )
        yield Figure(name, one / other, 1.15, detail=f"{one * 20:.2f} ms against {other * 20:.2f} ms a run")


def durable(folder: Path) -> list[Figure]:
    """Runs whose steps are kept on disk as they end, against the same runs recorded: processor time."""
    kept = recorded("tools-10", SqliteStore(folder / "durable.db"), durable=True)
    ours = recorded("tools-10", SqliteStore(folder / "recorded.db"))
    one, other = interleaved(times(4, lambda: kept.run("x")), times(4, lambda: ours.run("x")))
    return [
        Figure(
            "durable run / recorded run",
            one / other,
            1.4,
            detail=f"{one / 44 * 1000:.2f} ms against {other / 44 * 1000:.2f} ms a request",
        )
    ]


def replay(folder: Path) -> Figure:
    """Runs that stopped just before their end, resumed: processor time, with all that a resume reads and writes.

    Beside it, the same steps of bare PydanticAI with a model that answers at once: what its graph takes for them.
    """
    runs = recorded("tools-10", SqliteStore(folder / "replayed.db"), durable=True)
    rehearsal = runs.shared.rehearsal = Rehearsal()

    async def seconds() -> float:
        stopped = [await runs.execute("x") for _ in range(REPLAYS)]
        rehearsal.replays = True
        started = time.process_time()
        for each in stopped:
            await runs.resume(each.run_id)
        return time.process_time() - started

    async def graph() -> float:
        agent = Agent(FunctionModel(_answer_at_once), instructions="Be brief.", tools=tools())
        await agent.run("x")
        started = time.process_time()
        for _ in range(REPLAYS):
            await agent.run("x")
        return time.process_time() - started

    each, other = (asyncio.run(work()) / REPLAYS * 1000 for work in (seconds, graph))
    detail = f"{each:.1f} ms a run of {STEPS} steps, {other:.1f} ms for bare with a model that answers at once"
    return Figure("replay of a step", each / STEPS, 1.0, "ms", detail=detail)


def _answer_at_once(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Ten calls of `add`, then a text, as the server answers."""
    answers = sum(isinstance(each, ModelResponse) for each in messages)
    if answers < STEPS // 2:
        return ModelResponse([ToolCallPart("add", {"a": answers, "b": 1}, f"call_{answers}")])
    return ModelResponse([TextPart("done")])


def database(folder: Path) -> Iterator[Figure]:
    """Durable runs on PostgreSQL, against the same runs on SQLite: the wall time, of both processes together."""
    if missing() is not None:
        return
    server = start_server(fsync="on")
    try:
        there = recorded("tools-10", PostgresStore(server.url()), durable=True)
        here = recorded("tools-10", SqliteStore(folder / "beside.db"), durable=True)
        one, other = interleaved(
            times(4, lambda: there.run("x")), times(4, lambda: here.run("x")), clock=time.perf_counter
        )
        yield Figure(
            "durable run on PostgreSQL / on SQLite",
            one / other,
            2.0,
            detail=f"{one / 44 * 1000:.2f} ms against {other / 44 * 1000:.2f} ms a request",
        )
    finally:
        stop_server(server)

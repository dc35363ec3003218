"""The longest time for which the event loop is held up: by large results, many agents or tools, a long thread."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.measure import Figure, as_a_service
from benchmarks.threads import turns
from llm_do.threads import ConversationManager, SqliteStore
from tests.support.loop_blocks import measured_blocks, numbered_tool
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script
from tests.toolsets.mcp_support import large_answers, runtime

ROWS = 600_000
AGENTS = 2_000
TOOLS = 1_000
MESSAGES = 5_000
RECORDS = 100_000
SERVER_ROWS = 80_000
"""Rows of a server's answer, which is ten million bytes with them, as text and as data."""

ROUNDS = 3


def rows() -> list[dict[str, Any]]:
    """Return many rows."""
    return [{"id": number, "name": f"row {number}", "good": True, "share": number / 3} for number in range(ROWS)]


class Row(BaseModel):
    """A row of a table."""

    id: int
    name: str
    good: bool = True


class Table(BaseModel):
    """A table, as tools and functions return it."""

    rows: list[Row]


def table() -> Table:
    """Return a table."""
    return Table(rows=[Row(id=number, name=f"row {number}") for number in range(RECORDS)])


def function(input: object, ctx: object) -> Table:
    """Return a table to the program."""
    return table()


async def many(input: object, ctx: Any) -> int:
    """Call many agents at once."""
    return len(await asyncio.gather(*(ctx.call("worker", "x") for _ in range(AGENTS))))


def tools() -> list[Callable[..., str]]:
    """Return many functions, none of which has been a tool before."""
    return list(map(numbered_tool, range(TOOLS)))


async def _block(runtime: Any) -> float:
    async with measured_blocks() as blocks:
        await runtime.execute("go")
    return blocks.longest * 1000


async def _thread_block(folder: Path) -> float:
    """Continue a thread of many messages, all of which the model is sent."""
    store = SqliteStore(folder / "thread.db")
    await ConversationManager(store).add_messages("long", turns(MESSAGES))
    runtime = runtime_of([agent("main", script("done"))], options={"store": store, "record": True})
    async with measured_blocks() as blocks:
        await runtime.run("go", thread_id="long")
    return blocks.longest * 1000


async def _server_block(folder: Path) -> float:
    """Let a server answer with many rows."""
    rows = call("small_answer", kind=str(SERVER_ROWS))
    return await _block(runtime(folder, rows, command=large_answers()))


def main() -> list[Figure]:
    """Measure the longest blocks, in ms; the shortest of a few measurements, to which other programs add."""
    with tempfile.TemporaryDirectory() as folder, as_a_service():
        result = runtime_of([agent("main", script(call("rows"), "done"), tools=[rows])], root=Path(folder))
        models = runtime_of([agent("main", script(call("table"), "done"), tools=[table])], root=Path(folder))
        functions = runtime_of([], function, options={"store": SqliteStore(Path(folder) / "runs.db"), "record": True})
        agents = runtime_of([agent("worker", script("done"))], many)
        one = min(asyncio.run(_block(result)) for _ in range(ROUNDS))
        as_models = min(asyncio.run(_block(models)) for _ in range(ROUNDS))
        as_output = min(asyncio.run(_block(functions)) for _ in range(ROUNDS))
        other = min(asyncio.run(_block(agents)) for _ in range(ROUNDS))
        third = min(
            asyncio.run(_block(runtime_of([agent("main", script(call("tool_1", path="x"), "done"), tools=tools())])))
            for _ in range(ROUNDS)
        )
        fourth = min(asyncio.run(_thread_block(Path(tempfile.mkdtemp(dir=folder)))) for _ in range(ROUNDS))
        fifth = min(asyncio.run(_server_block(Path(tempfile.mkdtemp(dir=folder)))) for _ in range(ROUNDS))
    return [
        Figure(f"longest block, a thread of {MESSAGES} messages", fourth, 50, "ms"),
        Figure(f"longest block, {ROWS} rows", one, 50, "ms"),
        Figure(f"longest block, a model of {RECORDS} rows", as_models, 50, "ms"),
        Figure(f"longest block, a function's {RECORDS} rows", as_output, 50, "ms"),
        Figure(f"longest block, {AGENTS} agents at once", other, 50, "ms"),
        Figure(f"longest block, an agent of {TOOLS} tools", third, 50, "ms"),
        Figure(f"longest block, {SERVER_ROWS} rows of an MCP server", fifth, 50, "ms"),
    ]

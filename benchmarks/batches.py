"""`Runtime.map` against a bare `asyncio.gather` with a semaphore: the same agent, model class and server."""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.in_process import bare, runtime
from benchmarks.measure import Figure, interleaved
from benchmarks.server import serving
from llm_do import Runtime

COUNT = 500
"""Inputs a round. Ten thousand cost as much each (README.md)."""

AT_ONCE = 20


def main() -> list[Figure]:
    """Measure batches."""
    with serving() as url:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = url, "benchmark"
        return [mapped(COUNT)]


def mapped(count: int, rounds: int = 3) -> Figure:
    """Inputs of an agent with eight tools, of which none is called."""
    scratch = tempfile.TemporaryDirectory()
    folder = Path(scratch.name)
    numbers = itertools.count()
    reference = bare("text")

    async def ours() -> None:
        root = folder / str(next(numbers))
        root.mkdir()
        session = Runtime(replace(runtime("text").project, root=root))
        async for result in session.map((f"input {number}" for number in range(count)), concurrency=AT_ONCE):
            assert result.status == "completed"
        await session.aclose()

    async def gathered() -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with slots:
                await reference.run(f"input {number}")

        await asyncio.gather(*(one(number) for number in range(count)))

    try:
        one, other = interleaved(ours, gathered, rounds=rounds)
    finally:
        scratch.cleanup()
    detail = f"{one / count * 1000:.2f} ms against {other / count * 1000:.2f} ms an input"
    return Figure(f"map of {count} inputs / bare gather", one / other, 1.43, detail=detail)

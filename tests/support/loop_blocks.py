"""Measures for how long an event loop was held up, and tools to hold it up with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

__all__ = ["Blocks", "measured_blocks", "numbered_tool"]

BEAT = 0.005


@dataclass
class Blocks:
    """The longest time, in seconds, in which the loop didn't come round.

    Args:
        longest: As a clock on the wall shows it: other threads and programs add to it.
        longest_work: The processor time of the loop's own thread alone.
    """

    longest: float = 0.0
    longest_work: float = 0.0


@asynccontextmanager
async def measured_blocks() -> AsyncIterator[Blocks]:
    """Measure the longest block of the running loop: how late a timer is called."""
    loop = asyncio.get_running_loop()
    blocks = Blocks()

    def beat(due: float) -> None:
        nonlocal timer, worked
        now, work = loop.time(), time.thread_time()
        blocks.longest = max(blocks.longest, now - due)
        blocks.longest_work = max(blocks.longest_work, work - worked)
        worked = work
        timer = loop.call_at(now + BEAT, beat, now + BEAT)

    worked = time.thread_time()
    timer = loop.call_at(loop.time() + BEAT, beat, loop.time() + BEAT)
    try:
        yield blocks
        await asyncio.sleep(2 * BEAT)
    finally:
        timer.cancel()


def numbered_tool(number: int) -> Callable[..., str]:
    """Return a function with a number, which no agent has had as a tool."""

    def tool(path: str, count: int = 1, names: list[str] | None = None) -> str:
        """Do a thing.

        Args:
            path: Where.
            count: How often.
            names: For whom.
        """
        return "done"

    tool.__name__ = f"tool_{number}"
    return tool

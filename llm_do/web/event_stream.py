"""A run's events as server-sent events, which a client can take up again after the last one that it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.runtime.record.stored_records import Observation
from llm_do.web.run_document import document_text

__all__ = ["event_stream", "last_seen"]

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection."""


async def event_stream(events: AsyncIterator[Observation]) -> AsyncIterator[str]:
    """Yield events with their numbers as ids, then `event: end`, after which nothing will follow."""
    queue: asyncio.Queue[Observation | None] = asyncio.Queue(100)

    async def read() -> None:
        async for each in events:
            await queue.put(each)
        await queue.put(None)

    reading = asyncio.ensure_future(read())
    try:
        yield "retry: 1000\n\n"
        while True:
            waiting = asyncio.ensure_future(queue.get())
            await asyncio.wait([waiting, reading], timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                if reading.done() and queue.empty():
                    reading.result()
                    return
                yield ": still here\n\n"
                continue
            item = waiting.result()
            if item is None:
                yield "event: end\ndata: {}\n\n"
                return
            yield f"id: {item.seq}\ndata: {document_text(dict(item.data))}\n\n"
    finally:
        await cancel_and_wait(reading)


def last_seen(header: str | None, parameter: str | None) -> int:
    """The number of the last event that a client has; -1 if it has none.

    Raises:
        ValueError: It isn't a number.
    """
    text = header if header is not None else parameter
    if text is None or text in ("", "-1"):
        return -1
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise ValueError(f"the last event's number is {text!r}")
    return int(text)

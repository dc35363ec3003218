"""A run's events as server-sent events, which a client can take up again after the last one that it has."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.runtime.record.stored_records import Observation
from llm_do.web.requests import BadRequestError
from llm_do.web.run_document import document_text

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["EventResponse", "EventStreams", "event_stream", "last_seen"]

MOST_STREAMS = 100
"""Streams that a user may have at once: each takes a connection, of which a process has a limited number."""

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection."""


class EventStreams:
    """The streams that are being read, by user."""

    def __init__(self) -> None:
        self._open: Counter[str | None] = Counter()
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams, including those of runs that haven't ended: the server is shutting down."""
        self._closing.set()

    def respond(self, events: AsyncIterator[Observation], user: str | None) -> EventResponse:
        """Stream events to a user.

        Raises:
            BadRequestError: The user has too many streams.
        """
        if self._open[user] >= MOST_STREAMS:
            raise BadRequestError(f"you follow {MOST_STREAMS} runs already", 429, hint="End some of these streams.")
        return EventResponse(event_stream(events, self._closing), self._open, user)


class EventResponse(StreamingResponse):
    """A stream of events, which counts among its user's as long as it is sent."""

    def __init__(self, stream: AsyncIterator[str], open: Counter[str | None], user: str | None) -> None:
        super().__init__(stream, media_type="text/event-stream")
        self._open, self._user = open, user

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        self._open[self._user] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open[self._user] -= 1


async def event_stream(events: AsyncIterator[Observation], closing: asyncio.Event) -> AsyncIterator[str]:
    """Yield events with their numbers as ids, then `event: end`, after which nothing will follow.

    A stream that ends without it, because the server is shutting down, can be resumed.
    """
    queue: asyncio.Queue[Observation | None] = asyncio.Queue(100)

    async def read() -> None:
        async for each in events:
            await queue.put(each)
        await queue.put(None)

    reading, ending = asyncio.ensure_future(read()), asyncio.ensure_future(closing.wait())
    try:
        yield "retry: 1000\n\n"
        while not closing.is_set():
            waiting = asyncio.ensure_future(queue.get())
            await asyncio.wait([waiting, reading, ending], timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                if reading.done() and queue.empty():
                    reading.result()
                    return
                if not ending.done():
                    yield ": still here\n\n"
                continue
            item = waiting.result()
            if item is None:
                yield "event: end\ndata: {}\n\n"
                return
            yield f"id: {item.seq}\ndata: {document_text(dict(item.data))}\n\n"
    finally:
        ending.cancel()
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

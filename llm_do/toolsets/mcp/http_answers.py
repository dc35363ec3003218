"""What is read from a server's HTTP responses: messages of bounded size, for a bounded time.

A response is a JSON document, or a stream of events of which each has one message. The SDK gets both with a small
message in the place of a large one, and with an error in the place of an answer that isn't read (`large_answers`): an
exception would end the connection, and with it the other calls. Headers are bounded by the HTTP client.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import cast

import httpx2

from llm_do.models.connections.answer_bounds import (
    ENCODINGS,
    PIECE,
    AnswerBoundError,
    Unpacker,
    check_encoding,
)
from llm_do.toolsets.mcp.large_answers import (
    EDGE,
    LARGE_MESSAGE,
    TOO_LARGE,
    LargeAnswers,
    MessageParts,
    begins_answer,
    refusal,
    refusal_of,
    usable,
)

__all__ = ["BoundedTransport"]

_RECONNECTIONS = 20
"""Streams that are resumed in quick succession: a server may end each at once."""

_RECONNECTION_SECONDS = 5.0
_LINES = 1000
"""Lines of a large event; one line has the message, unless its JSON is indented."""

_LINE_END = re.compile(rb"\r\n?")
_DATA = re.compile(rb"^data: ?([^\n]+)", re.MULTILINE)
_RETRY = re.compile(rb"^retry:[^\n]*\n", re.MULTILINE)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport for one server.

    Args:
        transport: What sends the requests.
        answers: Where large answers are kept.
        seconds: For how long an answer to a request is read; its caller doesn't wait for longer.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport, answers: LargeAnswers, seconds: float) -> None:
        self._transport = transport
        self._answers = answers
        self._seconds = seconds
        self._resumed = 0.0
        self._last_resumed = time.monotonic()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if "last-event-id" in request.headers and not self._may_resume():
            return httpx2.Response(httpx2.codes.TOO_MANY_REQUESTS, request=request)
        request.headers["accept-encoding"] = ENCODINGS
        # A stream that a GET opens has no end: on it, the server sends what answers no request.
        seconds = self._seconds if request.method == "POST" else None
        until = time.monotonic() + seconds if seconds is not None else None
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                response = await self._transport.handle_async_request(request)
        except TimeoutError:
            if not deadline.expired():
                raise
            return _refused(request, f"the server didn't answer in {self._seconds:g} s")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(request, response, response.stream, self._answers, until)
        response.headers.pop("content-encoding", None)
        response.headers.pop("content-length", None)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _may_resume(self) -> bool:
        """Whether a stream may be resumed: now and then, or a few times at once."""
        now = time.monotonic()
        passed, self._last_resumed = now - self._last_resumed, now
        self._resumed = max(self._resumed - passed / _RECONNECTION_SECONDS, 0.0) + 1
        return self._resumed <= _RECONNECTIONS


class _Body(httpx2.AsyncByteStream):
    """The body of a response as the SDK gets it."""

    def __init__(
        self,
        request: httpx2.Request,
        response: httpx2.Response,
        stream: httpx2.AsyncByteStream,
        answers: LargeAnswers,
        until: float | None,
    ) -> None:
        self._request = request
        self._headers = response.headers.copy()
        self._stream = stream
        self._answers = answers
        self._until = until
        self._has_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self._has_events:
                async for part in self._events():
                    yield part
            else:
                yield await self._document()
        except (AnswerBoundError, httpx2.DecodingError, httpx2.ReadTimeout) as error:
            if self._has_events and isinstance(error, httpx2.ReadTimeout):
                raise  # the stream is resumed
            yield self._refusal(f"the server's answer can't be read: {error}")

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _document(self) -> bytes:
        message = MessageParts()
        async for part in self._parts():
            message.add(part)
            if message.is_too_large:
                return refusal_of(message.take(), TOO_LARGE, _request_id(self._request)) or b""
        size, whole = message.size, message.take()
        return usable(whole) if size <= LARGE_MESSAGE else self._answers.keep(whole, _request_id(self._request)) or b""

    async def _events(self) -> AsyncIterator[bytes]:
        events = _Events()
        async for part in self._parts():
            for at in range(0, len(part), PIECE):
                if ready := b"".join(map(self._event, events.add(part[at : at + PIECE]))):
                    yield ready
                # Events that are there already are read without a pause, and nothing else would have a turn.
                await asyncio.sleep(0)

    def _event(self, event: MessageParts) -> bytes:
        """An event as the SDK gets it; nothing of one that is large and answers nothing."""
        size, problem = event.size, TOO_LARGE if event.is_too_large else None
        whole = event.take()
        if size <= LARGE_MESSAGE:
            whole = _RETRY.sub(b"", whole) if b"retry:" in whole else whole
            return _DATA.sub(lambda found: b"data: " + usable(found[1]), whole)
        if problem is None and whole.count(b"\n") > _LINES:
            problem = f"the server's answer is an event of more than {_LINES} lines"
            whole = whole[:EDGE] + whole[-EDGE:]
        lines = whole.split(b"\n")
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if problem is None:
            message = self._answers.keep(data)
        else:  # its end, which may have the id, isn't there yet
            message = refusal_of(data, problem, _request_id(self._request)) if begins_answer(data) else None
        return b"" if message is None else _written(message)

    def _refusal(self, problem: str) -> bytes:
        request_id = _request_id(self._request)
        if request_id is None:
            return b""
        message = refusal(request_id, problem)
        return _written(message) if self._has_events else message

    async def _parts(self) -> AsyncIterator[bytes]:
        """The bytes of the body, unpacked.

        Raises:
            AnswerBoundError: It takes too long, or is packed in a way that the request doesn't accept.
            httpx2.DecodingError: It can't be unpacked.
        """
        unpacker = Unpacker() if check_encoding(self._headers) else None
        async for part in self._stream:
            if self._until is not None and time.monotonic() > self._until:
                raise AnswerBoundError("it takes too long")
            for unpacked in (part,) if unpacker is None else unpacker.pieces(part):
                yield unpacked


class _Events:
    """Finds the events of a stream in its bytes, whose lines then end in a line feed."""

    def __init__(self) -> None:
        self._event = MessageParts()
        self._ends_in_return = False
        self._begins_line = True
        self._is_skipped = False

    def add(self, part: bytes) -> Iterator[MessageParts]:
        """Yield the events that end in the next bytes, or become too large; each is to be taken before the next."""
        if self._ends_in_return:
            part = part.removeprefix(b"\n")
        self._ends_in_return = part.endswith(b"\r")
        part = _LINE_END.sub(b"\n", part)
        at = 0
        while at < len(part):
            blank = at if self._begins_line and part.startswith(b"\n", at) else part.find(b"\n\n", at)
            end = len(part) if blank < 0 else at + 1 if blank == at and self._begins_line else blank + 2
            piece, at = part[at:end], end
            self._begins_line = piece.endswith(b"\n")
            was_skipped, self._is_skipped = self._is_skipped, self._is_skipped and blank < 0
            if was_skipped:
                continue
            self._event.add(piece)
            if blank >= 0 or self._event.is_too_large:
                self._is_skipped = blank < 0
                yield self._event


def _written(message: bytes) -> bytes:
    return b"data: " + message + b"\n\n"


def _request_id(request: httpx2.Request) -> object:
    """The id of a request of the protocol; None for a notification."""
    try:
        sent = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    return cast("dict[str, object]", sent).get("id") if isinstance(sent, dict) else None


def _refused(request: httpx2.Request, problem: str) -> httpx2.Response:
    """A response in the server's place; an exception would end the connection."""
    request_id = _request_id(request)
    if request_id is None:
        return httpx2.Response(httpx2.codes.ACCEPTED, request=request)
    headers = {"content-type": "application/json"}
    return httpx2.Response(httpx2.codes.OK, headers=headers, content=refusal(request_id, problem), request=request)

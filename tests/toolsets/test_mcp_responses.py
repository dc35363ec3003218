"""A server's HTTP responses are read for a bounded time, and streams are resumed a bounded number of times."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings, strategies as st

from llm_do.toolsets.mcp import http_answers, large_answers
from llm_do.toolsets.mcp.http_answers import BoundedTransport
from llm_do.toolsets.mcp.large_answers import LargeAnswers

EVENTS = {"content-type": "text/event-stream"}
ASKED = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}


class Parts(httpx2.AsyncByteStream):
    """A body in parts; it hangs after the last one if it doesn't end."""

    def __init__(self, parts: list[bytes], *, ends: bool = True) -> None:
        self.parts = parts
        self.ends = ends
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            for part in self.parts:
                await asyncio.sleep(0)
                yield part
            if self.ends:
                return

    async def aclose(self) -> None:
        self.is_closed = True


def client(respond: Callable[[httpx2.Request], Any], seconds: float = 60) -> httpx2.AsyncClient:
    transport = BoundedTransport(httpx2.MockTransport(respond), LargeAnswers(), seconds)
    return httpx2.AsyncClient(transport=transport, base_url="http://server")


def read(stream: Parts, headers: dict[str, str], seconds: float = 60) -> bytes:
    """Return what the SDK reads of a response to a call."""

    async def scenario() -> bytes:
        async with client(lambda _: httpx2.Response(200, headers=headers, stream=stream), seconds) as sending:
            return (await sending.post("/", json=ASKED)).content

    return asyncio.run(scenario())


@settings(max_examples=60)
@given(st.text(st.sampled_from("a\n\r:"), max_size=30), st.integers(1, 5))
def test_small_events_stay_as_they_are_however_they_come(text: str, size: int) -> None:
    data = text.encode()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    whole = lines[: lines.rfind("\n\n") + 2] if "\n\n" in lines else "\n" if lines.startswith("\n") else ""

    assert read(Parts(parts), EVENTS).decode() == whole


def test_the_server_cannot_set_the_delay_before_a_reconnection() -> None:
    assert read(Parts([b"id: 1\nretry: 0\ndata: x\n\nretry: 5\n\n"]), EVENTS) == b"id: 1\ndata: x\n\n\n"


@pytest.mark.parametrize("event", [b"data: %s\n\n", b": nothing\nevent: message\nid: 1\r\ndata:%s\r\n\r\n"])
def test_an_event_that_is_too_large_is_refused_at_once(event: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_answers, "LARGEST_MESSAGE", 5000)
    monkeypatch.setattr(http_answers, "LARGE_MESSAGE", 1000)
    text = b"x" * 9000 + b'"}}'
    log = event % (b'{"jsonrpc": "2.0", "method": "log", "params": {"text": "' + text)
    answer = event % (b'{"jsonrpc": "2.0", "result": {"text": "' + text)
    following = b"data: {}\n\n"

    first, second, third, rest = read(Parts([log, following, answer, following]), EVENTS).split(b"\n\n")
    assert (first, third, rest) == (b"data: {}", b"data: {}", b"")
    error = json.loads(second.removeprefix(b"data: "))
    assert (error["id"], "longer than" in error["error"]["message"]) == (7, True)


def test_a_response_takes_no_longer_than_its_caller_waits() -> None:
    drip = Parts([b": still here\n\n"], ends=False)
    content = read(drip, EVENTS, seconds=0.1)
    error = json.loads(content.rpartition(b"data: ")[2])
    assert (error["id"], error["error"]["message"]) == (7, "the server's answer can't be read: it takes too long")
    assert drip.is_closed


def test_a_server_that_sends_no_response_does_not_end_the_connection() -> None:
    async def never(_: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(600)
        raise AssertionError

    async def scenario() -> tuple[Any, int]:
        async with client(never, 0.05) as sending:
            asked = await sending.post("/", json=ASKED)
            notified = await sending.post("/", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            return asked.json(), notified.status_code

    answer, status = asyncio.run(scenario())
    assert (answer["id"], answer["error"]["message"]) == (7, "the server didn't answer in 0.05 s")
    assert status == 202


def test_streams_are_resumed_a_bounded_number_of_times() -> None:
    resumed = 0

    def respond(request: httpx2.Request) -> httpx2.Response:
        nonlocal resumed
        resumed += "last-event-id" in request.headers
        return httpx2.Response(200, headers=EVENTS, stream=Parts([]))

    async def scenario() -> list[int]:
        async with client(respond) as sending:
            found = [(await sending.get("/", headers={"last-event-id": "1"})).status_code for _ in range(30)]
            return [*found, (await sending.get("/")).status_code]

    *statuses, unresumed = asyncio.run(scenario())
    assert statuses == sorted(statuses)
    assert (statuses[0], statuses[-1], unresumed) == (200, 429, 200)
    assert resumed < 30


def test_an_encoding_that_the_request_does_not_accept_is_refused() -> None:
    headers = {"content-type": "application/json", "content-encoding": "br"}
    error = json.loads(read(Parts([b"packed"]), headers))
    assert (error["id"], "compressed as br" in error["error"]["message"]) == (7, True)

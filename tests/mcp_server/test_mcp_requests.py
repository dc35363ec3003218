"""What a client sends that can't be read: it is answered at once, and the next request as ever."""

from __future__ import annotations

import asyncio
import io
import json
import os
from typing import Any

import pytest

from llm_do.mcp_server.server import ProjectServer
from llm_do.runtime.session.runtime_config import RuntimeConfig
from tests.support.runs import agent, project_of
from tests.support.tables import each_row

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": "last", "method": "ping"}


class Answers(io.StringIO):
    """What the client gets, and whether the last request has been answered."""

    def __init__(self) -> None:
        super().__init__()
        self.last = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    def write(self, text: str) -> int:
        if '"last"' in text and self.loop is not None:
            self.loop.call_soon_threadsafe(self.last.set)
        return super().write(text)


def exchange(*lines: bytes) -> dict[object, Any]:
    """Send lines between a beginning and a ping, as a client does; returns the answers by their ids."""
    project = project_of([agent("main", "test")])
    server = ProjectServer(project, lambda approvals, ask: RuntimeConfig.of(project, approvals=approvals), version="1")

    stdout = Answers()

    async def go() -> None:
        stdout.loop = asyncio.get_running_loop()
        ours, theirs = os.pipe()
        with os.fdopen(ours, encoding="utf-8", errors="replace") as stdin:
            with os.fdopen(theirs, "wb") as client:
                client.write(b"\n".join((json.dumps(INITIALIZE).encode(), *lines, json.dumps(PING).encode(), b"")))
                client.flush()
                serving = asyncio.ensure_future(server.serve(stdin, stdout))
                await stdout.last.wait()
            await serving

    asyncio.run(asyncio.wait_for(go(), 30))
    told = [json.loads(line) for line in stdout.getvalue().splitlines()]
    return {each["id"]: each for each in told}


@each_row(
    "line, request_id, code",
    [
        (b"hello", None, -32700),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "pi', 7, -32700),
        (
            b'{"method": "ping", "jsonrpc": "2.0", "id": "x", "params": {"a": ' + b"[" * 3000 + b"]" * 3000 + b"}}",
            "x",
            -32700,
        ),
        (b"[1, 2]", None, -32600),
        (b'{"id": 7, "method": "ping"}', 7, -32600),
        (b'{"id": 0, "method": "ping"}', 0, -32600),
        (b'{"jsonrpc": "2.0", "id": 7}', 7, -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 1}', 7, -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', 7, -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "nope"}', 7, -32601),
    ],
)
def test_a_message_that_cannot_be_read_is_answered_with_an_error(line: bytes, request_id: object, code: int) -> None:
    answers = exchange(line)
    assert answers[request_id]["error"]["code"] == code
    assert answers[request_id]["error"]["message"]
    assert answers["last"]["result"] == {}


@pytest.mark.parametrize("text", [b"\\ud800", b"\xff"])
def test_half_a_character_becomes_a_replacement_character(text: bytes) -> None:
    answers = exchange(b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a ' + text + b'"}}')
    assert answers[7]["error"]["message"] == "there is no tool 'a \ufffd'"


def test_a_notification_and_an_empty_line_are_not_answered() -> None:
    assert exchange(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', b" ").keys() == {"first", "last"}


@each_row(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "result": "a text"}',
        b'{"jsonrpc": "2.0", "id": 7, "error": 3}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"a": ' + b"[" * 3000 + b"]" * 3000 + b"}}",
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "what?"}}',
    ],
)
def test_an_answer_that_cannot_be_read_is_not_answered_with_an_error_which_would_have_the_id_of_another_request(
    line: bytes,
) -> None:
    assert exchange(line).keys() == {"first", "last"}

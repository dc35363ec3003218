"""Answers of MCP servers that the protocol doesn't have: the call ends at once with a reason, and doesn't time out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from llm_do import Runtime
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from tests.support.history import results_of
from tests.support.loopback import serve_handler
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.mcp_servers import odd_answers

NO_ANSWER = "get failed at the MCP server small: the server's answer isn't one of the protocol"
OUTCOMES = {
    "no result": ("failed", NO_ANSWER),
    "a list": ("failed", NO_ANSWER),
    "a text": ("failed", NO_ANSWER),
    "a number": ("failed", NO_ANSWER),
    "an error that is a text": ("failed", NO_ANSWER),
    "an error without a number": ("failed", NO_ANSWER),
    "levels": ("failed", "get failed at the MCP server small: the server's answer can't be read: recursion limit"),
    "no JSON": ("failed", "get failed at the MCP server small: the server's answer can't be read: expected value"),
    "half a character": ("success", "cut \ufffd"),
    "characters in halves": ("success", "\U0001f600"),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in asked:
                self.send_response(202)
                self.end_headers()
                return
            text = odd_answers.answer(asked)
            as_events = asked["method"] == "tools/call" and self.path == "/events"
            data = (f"data: {text}\n\n" if as_events else text).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if as_events else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with serve_handler(Handler) as address:
        yield address


@pytest.mark.parametrize("kind", ["command", "document", "events"])
def test_an_answer_of_another_shape_ends_its_call_with_a_reason(tmp_path: Path, address: str, kind: str) -> None:
    config = {"command": [sys.executable, odd_answers.__file__]} if kind == "command" else {"url": f"{address}/{kind}"}
    spec = agent("main", script([call("small_get", kind=name) for name in OUTCOMES], "done"), toolsets=["small"])
    toolset = BuiltinToolset("small", {"type": "mcp", "timeout": 60, **config})
    runtime = Runtime(project_of([spec], root=tmp_path, toolsets={"small": toolset}), approvals="approve_all")
    begun = time.monotonic()

    result = carry_out(runtime)

    assert result.status == "completed", result.error
    found = zip(results_of(result.messages), OUTCOMES.values(), strict=True)
    assert [(outcome, text[: len(expected)]) for (_, outcome, text), (_, expected) in found] == list(OUTCOMES.values())
    assert time.monotonic() - begun < 50

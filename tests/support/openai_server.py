"""A scripted OpenAI-compatible server on loopback, for tests that need real HTTP.

    with serve({"gpt-test": [{"text": "Hello"}]}) as (url, log):
        ...

The model's name in a request chooses the script, a list of turns. Which turn is answered follows from the number of
assistant messages in the request, so one server serves any number of runs; past the last turn it repeats the last.
A script may also be a function of the request's body that returns the turn. A turn is one of

    {"text": "Hello {user}", "chunks": 3}                  text; {user} and {tool} are filled in
    {"tools": [{"name": "add", "args": {"a": 1}}]}         tool calls; args may be raw text
    {"status": 429, "times": 2, "retry_after": 0.1}        so many errors before the next turn
    {"cut": True, "times": 1}                              the connection is cut half-way through the answer; with
                                                           "quietly" a stream ends as if that were all of it

and may have "delay" (seconds before the answer), "usage" ([input, output] tokens) and "body" (of an error).
`log` is a list of `Request`s, in the order they came.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any

from tests.support.loopback import LoopbackServer, serving

__all__ = ["Request", "Script", "Turn", "serve"]

Turn = Mapping[str, Any]

Script = Sequence[Turn] | Callable[[Mapping[str, Any]], Turn]


@dataclass(frozen=True)
class Request:
    """One received request: path, lower-case headers, raw body, and parsed body."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any] = field(repr=False)


@contextmanager
def serve(scripts: Mapping[str, Script]) -> Iterator[tuple[str, list[Request]]]:
    """Serve scripts by model name; yields the base URL and the log of requests."""
    server = _Server(scripts)
    with serving(server) as address:
        yield f"{address}/v1", server.log


class _Server(LoopbackServer):
    def __init__(self, scripts: Mapping[str, Script]) -> None:
        super().__init__(_Handler)
        self.scripts = scripts
        self.log: list[Request] = []
        self.lock = threading.Lock()
        self.spent: dict[tuple[str, int], int] = {}
        self.ids = count(1)

    def turn(self, body: Mapping[str, Any]) -> Turn:
        turns = self.scripts[body["model"]]
        if callable(turns):
            return turns(body)
        answered = sum(message["role"] == "assistant" for message in body["messages"])
        position = 0
        for number, turn in enumerate(turns):
            failing = "status" in turn or "cut" in turn
            if position == answered and (not failing or self.spend((body["model"], number), turn)):
                return turn
            position += not failing
        return turns[-1]

    def spend(self, key: tuple[str, int], turn: Turn) -> bool:
        with self.lock:
            spent = self.spent.get(key, 0)
            self.spent[key] = spent + 1
            return spent < turn.get("times", 1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing to stderr."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.lock:
            self.server.log.append(Request(self.path, headers, raw, body))
        if not self.path.endswith("/chat/completions"):
            self.reply(404, {"error": {"message": f"not served here: {self.path}"}})
        elif body["model"] not in self.server.scripts:
            error = {"message": f"The model `{body['model']}` does not exist", "code": "model_not_found"}
            self.reply(404, {"error": error})
        else:
            self.answer(body, self.server.turn(body))

    def answer(self, body: dict[str, Any], turn: Turn) -> None:
        if delay := turn.get("delay"):
            time.sleep(delay)
        if "status" in turn:
            headers = {"retry-after": str(turn["retry_after"])} if "retry_after" in turn else {}
            default = {"error": {"message": "scripted failure"}}
            self.reply(turn["status"], turn.get("body", default), headers)
        elif body.get("stream"):
            self.stream(body, turn)
        elif turn.get("cut"):
            self.send_head(200, "application/json", {"content-length": "4096"})
            self.wfile.write(b'{"id": "cut')
            self.close_connection = True
        else:
            text, calls = self.content(body, turn)
            message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            self.reply(200, {**self.envelope(body, "chat.completion"), "choices": [choice], "usage": usage(body, turn)})

    def stream(self, body: dict[str, Any], turn: Turn) -> None:
        text, calls = self.content(body, turn)
        envelope = self.envelope(body, "chat.completion.chunk")
        self.send_head(200, "text/event-stream", {"transfer-encoding": "chunked"})
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in pieces(text or "", turn.get("chunks", 1))]
        deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
        for delta in deltas[: 2 if turn.get("cut") else None]:
            self.event({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if turn.get("cut") == "quietly":
            self.chunk(b"")
            return
        if turn.get("cut"):
            self.close_connection = True
            return
        finish = "tool_calls" if calls else "stop"
        self.event({**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        self.event({**envelope, "choices": [], "usage": usage(body, turn)})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def content(self, body: dict[str, Any], turn: Turn) -> tuple[str | None, list[dict[str, Any]]]:
        text = turn.get("text", "half an answer" if turn.get("cut") else None)
        if text is not None:
            text = text.replace("{user}", last(body, "user")).replace("{tool}", last(body, "tool"))
        calls = [
            {
                "id": call.get("id", f"call_{next(self.server.ids)}"),
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": arguments(call.get("args", {})),
                },
            }
            for call in turn.get("tools", ())
        ]
        return text, calls

    def envelope(self, body: dict[str, Any], kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{next(self.server.ids)}",
            "object": kind,
            "created": 1_700_000_000,
            "model": body["model"],
        }

    def send_head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def reply(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_head(status, "application/json", {"content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def event(self, body: object) -> None:
        self.chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def usage(body: Mapping[str, Any], turn: Turn) -> dict[str, int]:
    """Return the token usage of an answer: the script's, or ten per message."""
    tokens_in, tokens_out = turn.get("usage", (10 * len(body["messages"]), 10))
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def arguments(value: object) -> str:
    """Encode a call's arguments for the wire; text is sent unchanged, well formed or not."""
    return value if isinstance(value, str) else json.dumps(value)


def pieces(text: str, number: int) -> list[str]:
    """Split a text into this many nearly equal pieces, leaving out empty ones."""
    size = -(-len(text) // number) or 1
    return [text[start : start + size] for start in range(0, len(text), size)]


def last(body: Mapping[str, Any], role: str) -> str:
    """Return the text of the last message with this role."""
    for message in reversed(body["messages"]):
        if message["role"] == role:
            content = message["content"]
            return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return ""

"""A server on loopback whose answers are given byte by byte, for what real servers send besides the protocol.

    with serve_raw({"odd": [Answer(...)]}) as (url, log):
        ...

The model's name in a request chooses the answers. Which one is sent follows from the number of answers from a model in
the request; past the last one it is repeated. A request that a strict provider refuses is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from tests.support.loopback import LoopbackServer, serving

__all__ = ["Answer", "as_bytes", "events", "serve_raw"]

SSE = "text/event-stream"


@dataclass(frozen=True)
class Answer:
    """What one request is answered with, whole and streamed.

    Args:
        whole: The body of an answer that isn't streamed: JSON data, or text.
        stream: The body of a streamed answer; None repeats `whole`.
        status: The HTTP status.
        kind: The media type of `whole`, and of the stream if it is the same.
        headers: More headers.
        cut: Close the connection before the body is complete.
    """

    whole: Any
    stream: str | None = None
    status: int = 200
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


def events(*data: Any, done: bool = True) -> str:
    """A stream of these data as server-sent events."""
    lines = [each if isinstance(each, str) else json.dumps(each) for each in data]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])])


def as_bytes(body: Any) -> bytes:
    """A body as it is sent: text as it is, anything else as JSON."""
    return (body if isinstance(body, str) else json.dumps(body)).encode()


@contextmanager
def serve_raw(answers: Mapping[str, Sequence[Answer]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve answers by model name; yields the server's address and the bodies of the requests."""
    server = _Server(answers)
    with serving(server) as address:
        yield address, server.log


class _Server(LoopbackServer):
    def __init__(self, answers: Mapping[str, Sequence[Answer]]) -> None:
        super().__init__(_Handler)
        self.answers = answers
        self.log: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing to stderr."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.server.log.append(body)
        refused = refusal(body)
        if refused:
            self.send(Answer({"error": {"message": f"strict: {refused}", "code": "invalid"}}, status=400), stream=False)
            return
        # In Google's protocol the path names the model, and whether to stream.
        path = unquote(self.path).partition("?")[0]
        named, _, method = path.rpartition("/models/")[2].rpartition(":")
        answers = self.server.answers[body.get("model", named)]
        stream = bool(body.get("stream")) or method == "streamGenerateContent"
        self.send(answers[min(_answered(body), len(answers) - 1)], stream=stream)

    def send(self, answer: Answer, *, stream: bool) -> None:
        streamed = stream and answer.stream is not None
        data = as_bytes(answer.stream if streamed else answer.whole)
        self.send_response(answer.status)
        self.send_header("content-type", SSE if streamed else answer.kind)
        self.send_header("content-length", str(len(data) + 64 * answer.cut))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = answer.cut


def _answered(body: Mapping[str, Any]) -> int:
    """How many answers of a model a request holds since its last prompt."""
    roles = [_role(message) for message in body.get("messages") or body.get("input") or body.get("contents") or ()]
    last = max((at for at, role in enumerate(roles) if role == "user"), default=0)
    return sum(role == "assistant" for role in roles[last:])


def _role(message: Mapping[str, Any]) -> str:
    """Who a message comes from; tool results are from users in Anthropic's and Google's protocols, and nobody's in
    Responses."""
    if message.get("type") == "function_call" or message.get("role") == "model":
        return "assistant"
    if any("functionResponse" in part for part in message.get("parts", ())):
        return "tool"
    content = message.get("content")
    if isinstance(content, list) and any(part.get("type") == "tool_result" for part in content):
        return "tool"
    return message.get("role", "tool")


def refusal(body: Mapping[str, Any]) -> str:
    """Why a strict provider refuses a request; empty if it doesn't."""
    open_ids: list[str] = []
    if odd := _odd_ids(body):
        return odd
    for message in body.get("messages") or ():
        calls = message.get("tool_calls") or ()
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"nothing asked for {message['tool_call_id']!r}"
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return f"no results for {open_ids}"
        open_ids = [call["id"] for call in calls]
        if len(set(open_ids)) < len(open_ids) or any(len(each) > 64 for each in open_ids):
            return f"ids that can't be used: {open_ids}"
        names = [call["function"]["name"] for call in calls]
        content = message.get("content")
        if message["role"] == "user" and not content:
            return "an empty message"
        if isinstance(content, list):
            names += [part["name"] for part in content if part.get("type") == "tool_use"]
        if odd := _odd(names):
            return odd
    parts = [part for message in body.get("contents") or () for part in message["parts"]]
    names = [part[kind]["name"] for part in parts for kind in ("functionCall", "functionResponse") if kind in part]
    if any(not message["parts"] for message in body.get("contents") or ()):
        return "an empty message"
    return _odd([*names, *(item["name"] for item in body.get("input") or () if item.get("type") == "function_call")])


def _odd_ids(body: Mapping[str, Any]) -> str:
    """What Anthropic's API refuses in the ids of calls: other characters, an id used again, a result without a call."""
    contents = [
        message["content"] for message in body.get("messages") or () if isinstance(message.get("content"), list)
    ]
    blocks = [block for content in contents for block in content]
    ids = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
    if any(not re.fullmatch("[a-zA-Z0-9_-]+", each) for each in ids) or len(set(ids)) < len(ids):
        return f"ids that can't be used: {ids}"
    return "" if results == ids[: len(results)] else f"results of {results}, calls of {ids}"


def _odd(names: Sequence[str]) -> str:
    return next((f"no name of a tool: {name!r}" for name in names if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)), "")

"""Large answers of servers are converted like small ones, are bounded, and aren't parsed on the event loop."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pydantic_core
import pytest
from pydantic import TypeAdapter
from pydantic_ai.messages import BinaryContent, ToolReturnPart

from llm_do import Runtime
from llm_do.errors import RunError
from llm_do.toolsets.mcp import protocol
from tests.support.loopback import serve_handler
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.mcp_servers.large_answers import PICTURE, ROWS, WORDS, answer
from tests.toolsets.mcp_support import large_answers, runtime, toolset

LIMIT = 5_000_000
MOST_ON_THE_LOOP = 2**16


class Answering(BaseHTTPRequestHandler):
    """Answers as the last word of its path says: with a document, an event, or either of them compressed."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        form = self.path.rpartition("/")[2]
        if "id" not in request:
            self.reply(202, b"", "text/plain")
        elif (kind := ((request.get("params") or {}).get("arguments") or {}).get("kind")) in (
            "endless",
            "bomb",
            "torn",
        ):
            self.misbehave(kind, form, request["id"])
        elif form == "document":
            self.reply(200, json.dumps(answer(request)).encode(), "application/json")
        else:
            indent = 1 if form == "indented" or (form == "lines" and kind == "text") else None
            data = json.dumps(answer(request), indent=indent).encode().replace(b"\n", b"\r\ndata: ")
            log = {"method": "notifications/message", "params": {"level": "info", "data": WORDS}, "jsonrpc": "2.0"}
            before = b"data: " + json.dumps(log).encode() + b"\n\n" if kind is not None else b""
            self.reply(200, before + b"id: 7\r\nevent: message\r\ndata: " + data + b"\r\n\r\n", "text/event-stream")

    def misbehave(self, kind: str, form: str, request_id: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json" if form == "document" else "text/event-stream")
        self.send_header("connection", "close")
        start = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": "' % request_id
        start = start if form == "document" else b"data: " + start
        if kind == "endless":
            self.end_headers()
            self.wfile.write(start)
            while True:  # until the client hangs up
                self.wfile.write(b"x" * 65_536)
        self.send_header("content-encoding", "gzip")
        self.end_headers()
        self.wfile.write(gzip.compress(start + b"x" * (17 * 2**20)) if kind == "bomb" else b"torn" * 50)
        self.close_connection = True

    def do_GET(self) -> None:
        self.reply(405, b"", "text/plain")

    do_DELETE = do_GET  # noqa: N815

    def reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serve_handler(Answering) as address:
        yield address


@pytest.fixture
def config(request: pytest.FixtureRequest, address: str) -> dict[str, Any]:
    """The server, by the name of the way in which its answers come."""
    if request.param == "command":
        return {"command": large_answers()}
    return {"url": f"{address}/{request.param}"}


WAYS = ["command", "document", "events", "lines"]


def returned(root: Path, config: dict[str, Any], *kinds: str) -> list[tuple[str, Any]]:
    """Call the tool for each kind at once, and once more; return the outcomes and contents."""
    turns = [[call("small_answer", kind=kind) for kind in kinds], call("small_answer", kind="small"), "done"]
    spec = agent("main", script(*turns), toolsets=["small"])
    project = project_of([spec], root=root, toolsets={"small": toolset(**config)}, max_result_bytes=LIMIT)
    result = carry_out(Runtime(project, approvals="approve_all"))
    assert result.status == "completed", result.error
    parts = [part for message in result.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    *found, last = [(part.outcome, part.content) for part in parts]
    assert last == ("success", "small")
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("config", WAYS, indirect=True)
def test_a_large_result_is_converted_like_a_small_one(config: dict[str, Any], tmp_path: Path) -> None:
    found = returned(tmp_path, config, "text", "json", "rows", "object", "parts", "image", "resources")

    assert {outcome for outcome, _ in found} == {"success"}
    text, listed, rows, values, parts, (words, image), (contents, blob, uri) = [content for _, content in found]
    assert (text, listed, rows) == (WORDS, ROWS, ROWS)
    assert (values, parts) == ({"rows": ROWS, "more": 1}, ["first", WORDS])
    assert (words, image.data, image.media_type) == ("a picture", PICTURE, "image/png")
    assert (contents, blob.data, blob.media_type, uri) == (WORDS, PICTURE, "application/octet-stream", "x:c")
    assert isinstance(blob, BinaryContent)


@pytest.mark.sample(2)
@pytest.mark.parametrize("config", WAYS, indirect=True)
def test_an_answer_that_cannot_be_used_fails_its_call_alone(config: dict[str, Any], tmp_path: Path) -> None:
    found = returned(tmp_path, config, "failed", "error", "odd", "no content", "deep", "too large", "text")

    assert [outcome for outcome, _ in found] == ["failed"] * 6 + ["success"]
    failed, error, odd, no_content, deep, too_large, _ = [str(content) for _, content in found]
    assert failed.startswith("it broke. many words")
    assert "it broke. many words" in error
    assert max(len(failed), len(error)) < 2**16 + 200 < len(WORDS)
    prefix = "answer failed at the MCP server small: the server's answer"
    assert odd.startswith(f"{prefix} can't be read: it has a part of type 'smell'")
    assert no_content.startswith(f"{prefix} can't be read: it has no list of `content`")
    assert deep.startswith(f"{prefix} can't be read: the JSON is nested more deeply than 200 levels")
    assert too_large.startswith(f"{prefix} is longer than 16 MiB, the most that is read")


@pytest.mark.parametrize("config", ["document", "events"], indirect=True)
def test_a_body_without_an_end_or_a_compressed_one_is_not_read_to_its_end(
    config: dict[str, Any], tmp_path: Path
) -> None:
    found = returned(tmp_path, config, "endless", "bomb", "torn", "text")

    assert [outcome for outcome, _ in found] == ["failed"] * 3 + ["success"]
    endless, bomb, torn = [str(content) for _, content in found[:3]]
    prefix = "answer failed at the MCP server small: the server's answer"
    assert endless.startswith(f"{prefix} is longer than 16 MiB, the most that is read")
    assert bomb.startswith(f"{prefix} is longer than 16 MiB, the most that is read")
    assert torn.startswith(f"{prefix} can't be read: the answer can't be unpacked")


@pytest.mark.parametrize("config", ["indented"], indirect=True)
def test_a_large_event_has_a_bounded_number_of_lines(config: dict[str, Any], tmp_path: Path) -> None:
    ((outcome, content),) = returned(tmp_path, config, "rows")
    assert (outcome, "the server's answer is an event of more than 1000 lines" in str(content)) == ("failed", True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("config", WAYS, indirect=True)
def test_nothing_large_is_parsed_on_the_event_loop(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_the_loop: list[int] = []
    elsewhere: list[int] = []

    def watched(function: Any) -> Any:
        def parse(*args: Any, **options: Any) -> Any:
            data = next(each for each in args if isinstance(each, str | bytes))
            (on_the_loop if threading.current_thread() is threading.main_thread() else elsewhere).append(len(data))
            return function(*args, **options)

        return parse

    monkeypatch.setattr(TypeAdapter, "validate_json", watched(TypeAdapter.validate_json))
    monkeypatch.setattr(pydantic_core, "from_json", watched(pydantic_core.from_json))
    monkeypatch.setattr(protocol, "read_large_json", watched(protocol.read_large_json))
    returned(tmp_path, config, "text", "json", "rows", "image")

    assert max(on_the_loop) <= MOST_ON_THE_LOOP
    assert min(sorted(elsewhere)[-4:]) > MOST_ON_THE_LOOP


def command(*numbers: int) -> dict[str, Any]:
    """A server by the number of its tools, of those on a page, of values in each, and of other messages."""
    return {"command": large_answers(*map(str, numbers))}


@pytest.mark.slow
@pytest.mark.parametrize("page", [1000, 300])
def test_a_list_of_tools_is_used_up_to_a_bound(page: int, tmp_path: Path) -> None:
    assert returned(tmp_path, command(999, page, 1, 0), "text") == [("success", WORDS)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (command(1000, 1000, 1, 0), "it has more than 1000 tools"),
        (command(100_000, 300, 1, 0), "it has more than 1000 tools"),
        (command(10, 10, 6000, 0), "its list of tools has 50000 values or more"),
        (command(10, 3, 6000, 0), "its list of tools has 50000 values or more"),
    ],
)
def test_a_list_of_tools_that_is_too_large_is_an_error(server: dict[str, Any], reason: str, tmp_path: Path) -> None:
    result = carry_out(runtime(tmp_path, call("small_answer", kind="small"), **server))
    assert result.status == "failed"
    assert isinstance(result.error, RunError)
    assert result.error.message == f"the MCP server small did not list its tools: {reason}"
    result = carry_out(runtime(tmp_path, ref="small", required=False, **server))
    assert (result.status, [warning.message for warning in result.warnings]) == (
        "completed",
        [f"the MCP server small did not list its tools: {reason}; the run continues without it"],
    )


@pytest.mark.slow
def test_countless_messages_do_not_hold_an_answer_back(tmp_path: Path) -> None:
    assert returned(tmp_path, command(1, 1, 1, 3000), "text", "small") == [("success", WORDS), ("success", "small")]

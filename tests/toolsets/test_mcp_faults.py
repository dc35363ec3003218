"""Servers that are odd, broken or not MCP servers at all: what works is offered, and a person learns what is wrong."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from llm_do import RunResult, Runtime
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from tests.support.history import results_of
from tests.support.loopback import serve_handler
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

SERVER = str(Path(__file__).parent / "mcp_servers" / "plain_server.py")


def session(root: Path, *turns: Any, **config: Any) -> Runtime:
    spec = agent("main", script(*turns, "done"), toolsets=["small"])
    toolset = BuiltinToolset("small", {"type": "mcp", "timeout": 60, **config})
    return Runtime(project_of([spec], root=root, toolsets={"small": toolset}), approvals="approve_all")


def plain(mode: str) -> list[str]:
    return [sys.executable, SERVER, mode]


def failure(root: Path, **config: Any) -> Any:
    result = carry_out(session(root, call("small_add", a=1, b=2), **config))
    assert result.status == "failed"
    assert result.error is not None
    return result.error


@pytest.mark.slow
def test_a_server_that_ignores_unknown_methods_costs_no_more_than_a_share_of_its_time(tmp_path: Path) -> None:
    # The client's own probe takes 10 seconds, and the server would not have started in time.
    result = carry_out(session(tmp_path, call("small_add", a=1, b=2), command=plain("ignores"), timeout=9))
    assert [text for _, _, text in results_of(result.messages)] == ["3"], result.error


def test_tools_with_a_broken_schema_are_left_out_with_a_warning_and_the_others_work(tmp_path: Path) -> None:
    turns = [call("small_add", a=1, b=2), call("small_curious", a="aa"), call("small_bad_type")]
    runtime = session(tmp_path, turns, command=plain("broken"))
    result: RunResult = carry_out(runtime)

    outcomes = [(outcome, text) for _, outcome, text in results_of(result.messages)]
    assert outcomes[:2] == [("success", "3"), ("success", "curiouser")], result.error
    assert "unknown tool 'small_bad_type'" in outcomes[2][1]
    prefix = "the MCP server small: "
    warnings = {
        each.message.removeprefix(prefix).partition(" is left out, ")[0]: each.message for each in result.warnings
    }
    assert sorted(warnings) == [
        "bad_pattern",
        "bad_reference",
        "bad_required",
        "bad_type",
        "list_schema",
        "no_schema",
        "null_schema",
        "one without a name",
        "text_schema",
    ]
    assert warnings["bad_type"].startswith(
        f"{prefix}bad_type is left out, its inputSchema can't be used: properties.a.type: 'strin' is not valid"
    )
    spec = runtime.registry.agent("main")
    assert spec is not None
    offered = spec.model.asked[0].info.function_tools  # type: ignore[union-attr]
    assert {tool.name: tool.description for tool in offered}["small_curious"] is None


def test_a_tool_that_isnt_offered_is_not_warned_of(tmp_path: Path) -> None:
    config: dict[str, Any] = {"command": plain("broken"), "include": ["add", "bad_type"], "exclude": ["bad_*"]}
    result = carry_out(session(tmp_path, call("small_add", a=1, b=2), **config))
    assert result.warnings == []


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        (["cat"], "`cat` doesn't speak MCP: it doesn't know the request `initialize`", "starts on its own"),
        (["echo", "hello there"], "`echo` doesn't speak MCP: it printed 'hello there'", "starts on its own"),
        (["true"], "`true` ended instead of answering", "starts on its own"),
        (["no-such-server"], "there is no program `no-such-server` on the PATH", "Install it"),
        (["./none"], "there is no program `./none`", "Install it"),
        (["npx -y foo", "x"], "there is no program 'npx -y foo'", 'item of its own: ["npx", "-y", "foo", "x"].'),
        (["./data.txt"], "`./data.txt` can't be run: Permission denied", "Check the `command`"),
    ],
)
def test_a_command_that_is_no_mcp_server_is_called_that(
    tmp_path: Path, command: list[str], message: str, hint: str
) -> None:
    (tmp_path / "data.txt").write_text("x")
    error = failure(tmp_path, command=command)
    assert error.message.startswith(f"the MCP server small did not start: {message}")
    assert hint in error.hint


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")
def test_what_a_program_prints_while_it_is_waited_for_is_shown(tmp_path: Path) -> None:
    for seconds in (0.5, 5, 25):
        error = failure(tmp_path, command=["sh", "-c", "echo Listening on port 80; exec sleep 60"], timeout=seconds)
        if "; it printed 'Listening on port 80', which isn't MCP" in error.message:
            return
    pytest.fail(error.message)


class Answering(BaseHTTPRequestHandler):
    """Answers with the status in its path; `/later/STATUS` lets a server start, and fails at its first call."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words = self.path.strip("/").split("/")
        if words[0] == "html":
            self.reply(200, b"<html>", "text/html")
        elif words[0] != "later" or request["method"] == "tools/call":
            self.reply(int(words[-1]), b'{"detail": "no"}')
        elif "id" not in request:
            self.reply(202, b"")
        else:
            results: dict[str, Any] = {
                "initialize": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "x", "version": "1"},
                },
                "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            }
            found = results.get(request["method"])
            end = {"result": found} if found else {"error": {"code": -32601, "message": "Method not found"}}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **end}).encode())

    def do_GET(self) -> None:
        self.reply(405, b"")

    do_DELETE = do_GET  # noqa: N815

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serve_handler(Answering) as address:
        yield address


MEANINGS = [
    (401, "HTTP 401 (Unauthorized): it needs credentials, or doesn't accept those that it got", "Set `headers`"),
    (403, "HTTP 403 (Forbidden): it doesn't permit this with the credentials", "Check the token in `headers`"),
    (404, "HTTP 404 (Not Found): there is no MCP server at this address", "Check the path of the `url`"),
    (405, "HTTP 405 (Method Not Allowed): there is no MCP server at this address", "Check the path of the `url`"),
    (418, "HTTP 418 (I'm a Teapot): it refused the request", "Check the `url`"),
    (429, "HTTP 429 (Too Many Requests): it has got too many requests", "Try again later"),
    (500, "HTTP 500 (Internal Server Error): it failed", "Look into its log"),
    (503, "HTTP 503 (Service Unavailable): it isn't available at the moment", "Try again later"),
    (599, "HTTP 599: it failed", "Look into its log"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("status", "meaning", "hint"), MEANINGS)
def test_an_http_status_is_said_with_its_meaning(
    tmp_path: Path, address: str, status: int, meaning: str, hint: str
) -> None:
    error = failure(tmp_path, url=f"{address}/{status}")
    assert error.message.startswith(f"the MCP server small did not start: it answered with {meaning}")
    assert hint in error.hint


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_status_that_comes_later_is_in_the_calls_result(tmp_path: Path, address: str, status: int) -> None:
    result = carry_out(session(tmp_path, call("small_add"), url=f"{address}/later/{status}"))
    ((_, outcome, text),) = results_of(result.messages)
    assert outcome == "failed"
    assert text.startswith(f"add failed at the MCP server small: it answered with HTTP {status} (")


def test_an_address_without_mcp_is_called_that(tmp_path: Path, address: str) -> None:
    assert "what answers there doesn't speak MCP: it sent text/html" in failure(tmp_path, url=f"{address}/html").message
    assert "nothing answers at its address" in failure(tmp_path, url="http://127.0.0.1:9/mcp").message


def test_an_answer_that_is_too_long_fails_its_call_and_the_server_goes_on(tmp_path: Path) -> None:
    turns = [call("small_huge"), call("small_add", a=1, b=2)]
    result = carry_out(session(tmp_path, *turns, command=plain("well")))

    outcomes = [(outcome, text) for _, outcome, text in results_of(result.messages)]
    assert outcomes[0][0] == "failed"
    assert "the server's answer is longer than 16 MiB" in outcomes[0][1]
    assert outcomes[1] == ("success", "3")

"""A server that sends too much, packs it, or never ends costs bounded memory and time, and the error says so."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from llm_do import AgentSpec
from llm_do.models.connections import answer_bounds
from tests.support.loopback import serve_handler
from tests.support.runs import project_of
from tests.support.views import Ending, plain, stream

MIB = 2**20
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}],
}
CHUNK = json.dumps(
    {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word " * 10_000}}],
    }
).encode()

Writer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def served(write: Writer) -> Iterator[tuple[str, list[str]]]:
    """Serve one answer to every request; yields the address and what was accepted by each request."""
    accepted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing to stderr."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            accepted.append(self.headers["accept-encoding"])
            self.close_connection = True
            with suppress(OSError):  # the client hangs up
                write(self)

    with serve_handler(Handler) as address:
        yield address, accepted


def answer(kind: str, *headers: tuple[str, str]) -> Callable[[BaseHTTPRequestHandler], None]:
    """Send the head of an answer that ends when the connection does."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in (("content-type", kind), ("connection", "close"), *headers):
            handler.send_header(name, value)
        handler.end_headers()

    return send


def endless(kind: str, start: bytes, more: bytes, *headers: tuple[str, str]) -> Writer:
    """An answer that goes on until the client hangs up."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        answer(kind, *headers)(handler)
        handler.wfile.write(start)
        while True:
            handler.wfile.write(more)

    return write


def whole(kind: str, body: bytes, *headers: tuple[str, str]) -> Writer:
    """An answer with an end."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        answer(kind, *headers)(handler)
        handler.wfile.write(body)

    return write


def bomb(start: bytes, filler: bytes, megabytes: int) -> bytes:
    """Gzip that stands for much more than it is."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    megabyte = filler * (MIB // len(filler))
    return b"".join([packer.compress(start), *(packer.compress(megabyte) for _ in range(megabytes)), packer.flush()])


def flood_of_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    while True:
        handler.wfile.write(b"x-header: " + b"y" * 1000 + b"\r\n")


def ask(folder: Path, write: Writer, view: Callable[..., Ending], provider: str = "openai-chat") -> Ending:
    with served(write) as (url, _):
        agent = AgentSpec("main", model=f"{provider}:m", model_settings={"base_url": url})
        return view(project_of([agent], root=folder, max_retries=2), folder)


EVENT = b"data: " + CHUNK + b"\n\n"

EVERY_VIEW = pytest.mark.parametrize("view", [plain, stream], ids=["whole", "streamed"])


@pytest.fixture
def lower_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes instead of hundreds of them, for what takes a while to read."""
    monkeypatch.setattr(answer_bounds, "LARGEST_STREAM", 3 * MIB)
    monkeypatch.setattr(answer_bounds, "LARGEST_DOCUMENT", MIB)


@pytest.mark.sample(1)
@EVERY_VIEW
@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "google"])
def test_a_document_without_end_fails_once(
    tmp_path: Path, lower_bounds: None, view: Callable[..., Ending], provider: str
) -> None:
    ending = ask(tmp_path, endless("application/json", b'{"id": "', b"x" * 65536), view, provider)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "the answer is longer than 1 MiB, the most that is read" in ending.error
    assert ending.hint == "see what the server at this address sends"


@pytest.mark.slow
def test_a_stream_without_end_fails_once(tmp_path: Path, lower_bounds: None) -> None:
    ending = ask(tmp_path, endless("text/event-stream", b"", EVENT), stream)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "the answer is longer than 3 MiB, the most that is read" in ending.error


def test_a_stream_of_one_event_without_end_fails_once(tmp_path: Path, lower_bounds: None) -> None:
    ending = ask(tmp_path, endless("text/event-stream", EVENT + b"data: ", b"y" * 65536), stream)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "an event of the answer is longer than 1 MiB, the most that is read" in ending.error


def test_a_stream_that_never_says_anything_fails_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_bounds, "LONGEST_ANSWER", 0.2)
    ending = ask(tmp_path, endless("text/event-stream", b"", b": still here\n\n"), stream)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "the answer took longer than" in ending.error


@EVERY_VIEW
def test_headers_without_end_are_refused(tmp_path: Path, view: Callable[..., Ending]) -> None:
    ending = ask(tmp_path, flood_of_headers, view)

    assert ending.status == "provider_failed", ending
    assert "Connection error" in ending.error


@pytest.mark.sample(1)
@EVERY_VIEW
def test_a_bomb_is_not_unpacked(tmp_path: Path, lower_bounds: None, view: Callable[..., Ending]) -> None:
    packed = bomb(b'{"id": "', b"x" * MIB, 50)
    assert len(packed) < 60_000
    ask(tmp_path, whole("application/json", b"", ("content-encoding", "gzip")), view)  # what is imported doesn't count
    tracemalloc.start()
    try:
        ending = ask(tmp_path, whole("application/json", packed, ("content-encoding", "gzip")), view)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "the answer is longer than 1 MiB, the most that is read" in ending.error
    assert most < 10 * MIB


@pytest.mark.slow
def test_a_bomb_in_a_stream_is_not_unpacked(tmp_path: Path, lower_bounds: None) -> None:
    packed = bomb(EVENT, EVENT, 20)
    ending = ask(tmp_path, whole("text/event-stream", packed, ("content-encoding", "gzip")), stream)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert "the answer is longer than 3 MiB" in ending.error


@EVERY_VIEW
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_an_answer_that_is_packed_is_unpacked(tmp_path: Path, view: Callable[..., Ending], encoding: str) -> None:
    document = json.dumps(COMPLETION).encode()
    packed = gzip.compress(document[:50]) + gzip.compress(document[50:])
    ending = ask(tmp_path, whole("application/json", packed, ("content-encoding", encoding)), view)

    assert (ending.status, ending.output) == ("completed", "fine"), ending


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate"])
def test_an_answer_in_another_encoding_is_an_error_that_names_it(tmp_path: Path, encoding: str) -> None:
    ending = ask(tmp_path, whole("application/json", b"xyz", ("content-encoding", encoding)), plain)

    assert (ending.status, ending.requests) == ("provider_failed", 1), ending
    assert f"the answer is compressed as {encoding}, which the request doesn't accept" in ending.error


def test_an_answer_that_cannot_be_unpacked_is_an_error(tmp_path: Path) -> None:
    ending = ask(tmp_path, whole("application/json", b"no gzip", ("content-encoding", "gzip")), plain)

    assert ending.status == "provider_failed", ending
    assert "decompressing data: incorrect header" in ending.error


def test_requests_accept_what_is_unpacked(tmp_path: Path) -> None:
    with served(whole("application/json", json.dumps(COMPLETION).encode())) as (url, accepted):
        agent = AgentSpec("main", model="openai-chat:m", model_settings={"base_url": url})
        assert plain(project_of([agent], root=tmp_path), tmp_path).output == "fine"

    assert accepted == ["gzip"]


def test_the_next_model_of_a_list_answers_instead(tmp_path: Path, lower_bounds: None) -> None:
    with served(endless("application/json", b'{"id": "', b"x" * 65536)) as (url, accepted):
        agent = AgentSpec("main", model=["openai-chat:m", "test"], model_settings={"base_url": url})
        ending = plain(project_of([agent], root=tmp_path), tmp_path)

    assert (ending.status, len(accepted)) == ("completed", 1), ending

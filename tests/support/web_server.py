"""A web server on loopback whose responses are written byte by byte, for what real servers send, and hostile ones.

    with serve_pages({"/": Page(b"Hello.")}) as site:
        ...

`site.requests` has every request that arrived.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase

__all__ = ["Page", "Received", "Site", "serve_pages"]


@dataclass(frozen=True)
class Received:
    """A request: its method, its target as it was sent, its headers by lower-case name, and its body."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Page:
    """A response.

    Args:
        body: The body.
        status: The status.
        kind: The media type; empty for none.
        headers: More headers; `content-length` replaces the true one.
        write: Writes everything behind the status line and the headers instead of the body.
        raw: The whole response, instead of all this.
    """

    body: bytes = b""
    status: int = 200
    kind: str = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)
    write: Callable[[BufferedIOBase], None] | None = None
    raw: bytes | None = None

    def send(self, out: BufferedIOBase) -> None:
        """Write the response."""
        if self.raw is not None:
            out.write(self.raw)
            return
        headers = {"connection": "close", **self.headers}
        if self.kind:
            headers.setdefault("content-type", self.kind)
        if self.write is None:
            headers.setdefault("content-length", str(len(self.body)))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        out.write(f"HTTP/1.1 {self.status} Status\r\n{head}\r\n".encode("latin-1"))
        (self.write or (lambda out: out.write(self.body)))(out)


@dataclass
class Site:
    """A server that runs: its port, and what has arrived."""

    port: int
    requests: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        return [request.target for request in self.requests]


@contextmanager
def serve_pages(pages: Mapping[str, Page | Callable[[Received], Page]]) -> Iterator[Site]:
    """Serve pages by path; any other path is a page with status 404."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # a client that has read enough
                request = _read(self.rfile)
                if request is None:
                    return
                site.requests.append(request)
                page = pages.get(request.target.partition("?")[0], Page(b"nothing", 404))
                (page if isinstance(page, Page) else page(request)).send(self.wfile)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore clients that disconnect."""

    with Server(("127.0.0.1", 0), Handler) as server:
        site = Site(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def _read(stream: BufferedIOBase) -> Received | None:
    first = stream.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", "0")))
    return Received(first[0], first[1], headers, body)

"""HTTP servers on loopback, whose handlers are the tests' own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["LoopbackServer", "serve_handler", "serving"]


class LoopbackServer(ThreadingHTTPServer):
    """A server on a free port that neither waits for its clients nor reports those that hang up.

    Args:
        handler: Answers the requests.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients; tests see any other error as a lost connection."""


@contextmanager
def serving(server: LoopbackServer) -> Iterator[str]:
    """Serve in a thread until the end of the block; yields the address."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serve_handler(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve with a handler; yields the address."""
    with serving(LoopbackServer(handler)) as address:
        yield address

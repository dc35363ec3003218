"""`Canary`: listens wherever something could be sent on this machine, and keeps what comes."""

from __future__ import annotations

import selectors
import socket
import threading
from pathlib import Path

__all__ = ["Canary"]

_NEW = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nContent-Disposition: attachment; filename=evil.py\r\n\r\nok"
_ELSEWHERE = b"HTTP/1.0 302 Found\r\nLocation: /secret\r\nContent-Length: 0\r\n\r\n"


class Canary:
    """A server for TCP and UDP on one port of this machine, and for sockets with a name."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._sockets[0].getsockname()[1]
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", self.port))
        self._sockets.append(datagrams)
        self._stopped, self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def listen_at(self, *paths: Path) -> None:
        """Listen at these paths too, and at a name that isn't a path; then serve."""
        for path in paths:
            self._listen(str(path))
        self._listen(f"\0canary-{self.port}")
        self._thread.start()

    def _listen(self, address: str) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        self._sockets.append(listener)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as ready:
            for each in (*self._sockets, self._stopped):
                ready.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    found = key.fileobj
                    assert isinstance(found, socket.socket)
                    if found is self._stopped:
                        return
                    self._hear(found)

    def _hear(self, found: socket.socket) -> None:
        if found.type == socket.SOCK_DGRAM:
            self.heard.append(b"UDP " + found.recv(65_536))
            return
        connection, _ = found.accept()
        with connection:
            connection.settimeout(0.3)
            try:
                request = connection.recv(65_536)
                self.heard.append(request or b"nothing")
                connection.sendall(_ELSEWHERE if b"redirect" in request else _NEW)
            except OSError:
                self.heard.append(b"nothing")

    def take(self) -> list[bytes]:
        """Return what was heard since the last time."""
        found, self.heard = self.heard, []
        return found

    def close(self) -> None:
        """Listen no longer."""
        self._stop.send(b"x")
        self._thread.join()
        for each in (*self._sockets, self._stopped, self._stop):
            each.close()

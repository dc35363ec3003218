"""Capture a command's output in limited memory: its head and tail, and optionally all of it in a file."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

__all__ = ["Capture", "OutputLimitError"]


class OutputLimitError(Exception):
    """A command printed more than the limit."""


class Capture:
    """Capture a stream piece by piece: at most `limit` bytes in memory, half of them from the beginning.

    A stream of more than `most` bytes raises `OutputLimitError`. `spill` opens the file that receives the full stream
    once it is longer than `limit`.

    Example:
        >>> capture = Capture(limit=8, most=1000)
        >>> capture.feed(b"0123456789abcdef")
        >>> capture.text()
        '0123\\n[... 8 of 16 bytes left out ...]\\ncdef'
    """

    def __init__(self, *, limit: int, most: int, spill: Callable[[], BinaryIO | None] | None = None) -> None:
        self.size = 0
        self._limit = limit
        self._tail_limit = limit - limit // 2
        self._most = most
        self._spill = spill
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: BinaryIO | None = None

    def feed(self, data: bytes) -> None:
        """Add the next piece."""
        if self._file is None and self._spill is not None and self.size + len(data) > self._limit:
            spill, self._spill = self._spill, None
            self._file = spill()
            if self._file is not None:
                self._write(bytes(self._head) + b"".join(self._tail))
        self.size += len(data)
        self._write(data)
        room = self._limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._keep_tail(data)
        if self.size > self._most:
            raise OutputLimitError

    @property
    def truncated(self) -> bool:
        """Whether the text omits a part of the stream."""
        return self.size > len(self._head) + self._tail_limit

    def data(self) -> bytes:
        """Return the bytes in memory."""
        return bytes(self._head) + b"".join(self._tail)

    def text(self) -> str:
        """Return all of the text, or its head and tail with a line between them, cut between characters."""
        tail = b"".join(self._tail)
        if not self.truncated:
            return (bytes(self._head) + tail).decode(errors="replace")
        tail = tail[-self._tail_limit :]
        first, last = _trim_end(bytes(self._head)), _trim_start(tail)
        cut = self.size - len(first) - len(last)
        return (
            f"{first.decode(errors='replace')}\n[... {cut} of {self.size} bytes left out ...]\n"
            f"{last.decode(errors='replace')}"
        )

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def _write(self, data: bytes) -> None:
        """Write to the file; give up the file, not the command, if the disk is full."""
        if self._file is not None:
            try:
                self._file.write(data)
            except OSError:
                self.close()
                self._file = None

    def _keep_tail(self, data: bytes) -> None:
        self._tail.append(data[-self._tail_limit :])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())


def _trim_end(data: bytes) -> bytes:
    """Remove an incomplete character from the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data


def _trim_start(data: bytes) -> bytes:
    """Remove an incomplete character from the beginning."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]

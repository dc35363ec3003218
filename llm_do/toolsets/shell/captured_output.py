"""A command's output in bounded memory: its head and its tail, and the whole of it in a file where there is one."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

__all__ = ["Capture", "OutputLimitError"]


class OutputLimitError(Exception):
    """A command has written more than it may."""


class Capture:
    """Takes a stream piece by piece and keeps what is told of it.

    Args:
        limit: Bytes that are kept in memory, half of them from the beginning.
        most: Bytes after which the command has to end.
        spill: Opens the file that takes the whole stream once it is longer than `limit`; None keeps none.

    Example:
        >>> capture = Capture(limit=8, most=1000)
        >>> capture.feed(b"0123456789abcdef")
        >>> capture.text()
        '0123\\n[... 8 of 16 bytes left out ...]\\ncdef'
    """

    def __init__(self, *, limit: int, most: int, spill: Callable[[], BinaryIO | None] | None = None) -> None:
        self.size = 0
        self._limit = limit
        self._most = most
        self._spill = spill
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: BinaryIO | None = None

    def feed(self, data: bytes) -> None:
        """Take the next piece.

        Raises:
            OutputLimitError: It is more than may be.
        """
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
        """Whether something is left out of the text."""
        return self.size > len(self._head) + self._limit - self._limit // 2

    def data(self) -> bytes:
        """What is kept in memory, as it came."""
        return bytes(self._head) + b"".join(self._tail)

    def text(self) -> str:
        """What is told: all, or head and tail with a line between them, cut between characters."""
        kept = self._limit - self._limit // 2
        tail = b"".join(self._tail)
        if not self.truncated:
            return (bytes(self._head) + tail).decode(errors="replace")
        tail = tail[-kept:]
        first, last = _whole_end(bytes(self._head)), _whole_start(tail)
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
        """Write to the file; a full disk costs the file, not the command."""
        if self._file is not None:
            try:
                self._file.write(data)
            except OSError:
                self.close()
                self._file = None

    def _keep_tail(self, data: bytes) -> None:
        kept = self._limit - self._limit // 2
        self._tail.append(data[-kept:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= kept:
            self._tail_size -= len(self._tail.popleft())


def _whole_end(data: bytes) -> bytes:
    """Without the beginning of a character at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data


def _whole_start(data: bytes) -> bytes:
    """Without the rest of a character at the beginning."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]

"""Read the standard error of a server continuously, so that it never blocks, and keep the last lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TextIO

__all__ = ["StderrTail"]

_KEPT = 8192
_CHUNK = 65_536
_LINES = 10
_LINE = 300
_MOMENT = 0.1


class StderrTail:
    """A pipe that a process can have as its standard error."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._transport: asyncio.ReadTransport | None = None
        self._task: asyncio.Task[None] | None = None
        self.file: TextIO | None = None

    async def open(self) -> TextIO:
        """Create the pipe, start reading it, and return the end that a process writes to."""
        read, write = os.pipe()
        self.file = os.fdopen(write, "w", encoding="utf-8")
        reader = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        source = os.fdopen(read, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        self._task = asyncio.ensure_future(self._read(reader))
        return self.file

    def add(self, text: str) -> None:
        """Add a text that the server sent in another way, such as a log message of the protocol."""
        self._keep(f"{text}\n".encode(errors="replace"))

    async def settle(self) -> None:
        """Wait a moment for output that is still in the pipe."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_MOMENT)

    def last_lines(self) -> str:
        """Return the last lines, or an empty text if there are none."""
        lines = [line.strip() for line in self._kept.decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(line[:_LINE] for line in lines[-_LINES:])

    def close(self) -> None:
        """Close both ends."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        self._kept += data
        del self._kept[:-_KEPT]

"""What a server says on standard error: read as it comes, so that a flood stops nobody, and only its end kept."""

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
        """Make the pipe, and read from now on.

        Returns:
            The end that a process writes to.
        """
        read, write = os.pipe()
        self.file = os.fdopen(write, "w", encoding="utf-8")
        reader = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        source = os.fdopen(read, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        self._task = asyncio.ensure_future(self._read(reader))
        return self.file

    def add(self, text: str) -> None:
        """Keep something the server has said in another way."""
        self._keep(f"{text}\n".encode(errors="replace"))

    async def settle(self) -> None:
        """Give what is on its way a moment to come in."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_MOMENT)

    def last_lines(self) -> str:
        """The last lines, empty when there were none."""
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

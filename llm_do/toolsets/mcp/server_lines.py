"""What a server that is a command prints, as lines of bounded length: an encoding for the SDK's client.

The SDK copies what it has of a line with each piece that comes, which takes minutes for a long one, and has no bound.
This encoding is UTF-8, with a decoder that holds a line back until it is complete. A message that is too long is never
in memory as a whole: an error takes its place, which ends the call that it would have answered.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["LARGEST_MESSAGE", "LINES"]

LARGEST_MESSAGE = 16 * 2**20
"""Bytes of one message of a server. The client turns it into objects in one go, while nothing else has a turn."""

LINES = "llm_do_lines"
"""The name of the encoding."""

_EDGE = 4096
"""Bytes at either end of a message that is too long, one of which has its id."""

_ID = rb'"id"\s*:\s*(\d+|"[^"\\]*")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_AT_END = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")


class _Line:
    """A line that isn't complete yet; of one that is too long, only its edges."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._start = b""
        self._end = b""

    def add(self, part: bytes) -> None:
        """Add the next bytes."""
        self._size += len(part)
        if self._size <= LARGEST_MESSAGE:
            self._parts.append(part)
            return
        if self._parts:
            joined = b"".join(self._parts)
            self._start, self._end = joined[:_EDGE], joined[-_EDGE:]
            self._parts.clear()
        self._end = (self._end + part)[-_EDGE:]

    def take(self) -> bytes:
        """Return the line, and begin the next one."""
        line = b"".join(self._parts) if self._size <= LARGEST_MESSAGE else _refusal(self._start, self._end)
        self.__init__()
        return line


def _refusal(start: bytes, end: bytes) -> bytes:
    """Return the answer that takes the place of one that is too long, in a line."""
    problem = f"the server's answer is longer than {LARGEST_MESSAGE // 2**20} MiB, the most that is read"
    found = _AT_START.match(start) or _AT_END.search(end)
    if found is None:  # not an answer: nothing waits for it
        return f"a message longer than {LARGEST_MESSAGE // 2**20} MiB\n".encode()
    error = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": {"code": -32000, "message": problem}}
    return json.dumps(error).encode() + b"\n"


class _Decoder(codecs.IncrementalDecoder):
    """Decodes complete lines only."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._line = _Line()

    def decode(self, input: Buffer, final: bool = False) -> str:
        """Decode the lines that end in a piece."""
        data = bytes(input)
        first = data.find(b"\n") + 1
        self._line.add(data[: first or None])
        if not first:
            return self._line.take().decode(errors=self.errors) if final else ""
        line = self._line.take()
        last = data.rfind(b"\n") + 1
        self._line.add(data[last:])
        rest = self._line.take() if final else b""
        return (line + data[first:last] + rest).decode(errors=self.errors)

    def reset(self) -> None:
        """Forget the line that isn't complete."""
        self._line = _Line()


def _find(name: str) -> codecs.CodecInfo | None:
    if name != LINES:
        return None
    utf8: Any = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=_Decoder, name=LINES)


codecs.register(_find)

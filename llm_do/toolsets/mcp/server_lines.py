"""What a server that is a command prints, as lines of bounded length: an encoding for the SDK's client.

The SDK copies what it has of a line with each piece that comes, which takes minutes for a long one, has no bound, and
parses each line in one go. This encoding is UTF-8, with a decoder that holds a line back until it is complete. A
message that is too large is never in memory as a whole. `large_answers` makes what takes the place of a large one.
"""

from __future__ import annotations

import codecs
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llm_do.toolsets.mcp.large_answers import LARGE_MESSAGE, TOO_LARGE, LargeAnswers, MessageParts, refusal_of, usable

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["LINES", "answers_of_connection"]

LINES = "llm_do_lines"
"""The name of the encoding."""

answers_of_connection: ContextVar[LargeAnswers] = ContextVar("answers_of_connection")
"""Where the decoder of a connection keeps large answers: an encoding is found by its name alone."""


class _Decoder(codecs.IncrementalDecoder):
    """Decodes complete lines only."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._line = MessageParts()
        self._answers = answers_of_connection.get()

    def decode(self, input: Buffer, final: bool = False) -> str:
        """Decode the lines that end in a piece."""
        data = bytes(input)
        first = data.find(b"\n") + 1
        self._line.add(data[: first or None])
        if not first:
            return self._take().decode(errors=self.errors) if final else ""
        line = self._take()
        last = data.rfind(b"\n") + 1
        self._line.add(data[last:])
        rest = self._take() if final else b""
        others = b"".join(map(usable, data[first:last].splitlines(keepends=True)))
        return (line + others + rest).decode(errors=self.errors)

    def reset(self) -> None:
        """Forget the line that isn't complete."""
        self._line = MessageParts()

    def _take(self) -> bytes:
        """Return the line, or what takes its place, and begin the next one."""
        is_too_large = self._line.is_too_large
        line = self._line.take()
        if not is_too_large and len(line) <= LARGE_MESSAGE:
            return usable(line)
        message = refusal_of(line, TOO_LARGE) if is_too_large else self._answers.keep(line)
        return (message or b"a large message that answers nothing") + b"\n"


def _find(name: str) -> codecs.CodecInfo | None:
    if name != LINES:
        return None
    utf8: Any = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=_Decoder, name=LINES)


codecs.register(_find)

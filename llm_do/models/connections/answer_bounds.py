"""What is read of one answer of a provider: a bounded number of bytes, as they are and unpacked, for a bounded time.

A document is held in memory as a whole; so is one event of a stream, and all the text that a stream has sent. Without
bounds a server that has gone wrong, or a hostile one, takes all the memory there is, or never lets go.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping

import httpx2

__all__ = [
    "ENCODINGS",
    "LONGEST_ANSWER",
    "AnswerBoundError",
    "Unpacker",
    "bound_behind",
    "bounded_stream",
    "check_encoding",
    "check_redirect",
    "too_slow",
]

LARGEST_DOCUMENT = 64 * 2**20
"""Bytes of a document, or of one event of a stream; pictures that models draw have a few million."""

LARGEST_STREAM = 512 * 2**20
"""Bytes of a stream, whose events say little in many words: a few hundred bytes for each token."""

LONGEST_ANSWER = 3600.0
"""Seconds from a request to the end of its answer, for a server that sends something now and then, for ever."""

ENCODINGS = "gzip"
"""What servers may pack their answers with: it can be unpacked in pieces."""

_UNKNOWN_TO_US = frozenset({"br", "zstd", "deflate", "compress"})

PIECE = 4096
"""Bytes of a stream that are read in one go: a few dozen events, which take a few milliseconds."""

_UNPACKED = 2**16


class AnswerBoundError(httpx2.RequestError):
    """An answer is more than is read of one, is elsewhere, or can't be read; asking again wouldn't help."""

    def __init__(self, message: str, *, hint: str = "see what the server at this address sends") -> None:
        super().__init__(message)
        self.hint = hint
        """What to do about it."""

    @property
    def message(self) -> str:
        """What is wrong, in one sentence."""
        return str(self)


def check_redirect(url: httpx2.URL, status: int, headers: Mapping[str, str]) -> None:
    """Check that an answer isn't a redirect, which isn't followed: what was sent, and the key, are for one address.

    Raises:
        AnswerBoundError: It is one; the error names the address that it leads to.
    """
    if not 300 <= status < 400:
        return
    place = ""
    if location := headers.get("location", ""):
        try:
            place = f" to {url.join(location).copy_with(query=None, fragment=None, userinfo=b'')}"
        except (httpx2.InvalidURL, ValueError):
            place = " to an address that isn't one"
    raise AnswerBoundError(
        f"the server redirects{place} (HTTP {status}), and redirects aren't followed",
        hint="name the address that answers, in `base_url` or the provider's variable",
    )


def check_encoding(headers: Mapping[str, str]) -> bool:
    """Whether an answer is packed.

    Raises:
        AnswerBoundError: It is packed in a way that the request doesn't accept.
    """
    used = {each.strip().lower() for each in headers.get("content-encoding", "").split(",")}
    if unknown := used & _UNKNOWN_TO_US:
        raise AnswerBoundError(f"the answer is compressed as {unknown.pop()}, which the request doesn't accept")
    return bool(used & {"gzip", "x-gzip"})


async def bounded_stream(
    parts: AsyncIterator[bytes], *, packed: bool, in_events: bool, begun: float
) -> AsyncIterator[bytes]:
    """Return the parts of an answer, unpacked; those of a stream of events in small pieces.

    Raises:
        AnswerBoundError: The answer is too long, or takes too long.
        httpx2.DecodingError: It can't be unpacked.
    """
    total = 0
    since_event = 0
    unpacker = Unpacker() if packed else None
    async for part in parts:
        if time.monotonic() - begun > LONGEST_ANSWER:
            raise too_slow()
        for unpacked in (part,) if unpacker is None else unpacker.pieces(part):
            total += len(unpacked)
            if total > (LARGEST_STREAM if in_events else LARGEST_DOCUMENT):
                raise _too_long("the answer", LARGEST_STREAM if in_events else LARGEST_DOCUMENT)
            if not in_events:
                yield unpacked
                continue
            for at in range(0, len(unpacked), PIECE):
                piece = unpacked[at : at + PIECE]
                since_event = _since_event(since_event, piece)
                if since_event > LARGEST_DOCUMENT:
                    raise _too_long("an event of the answer", LARGEST_DOCUMENT)
                yield piece
                # Events that are there already are read without a pause, and nothing else would have a turn.
                await asyncio.sleep(0)


def too_slow() -> AnswerBoundError:
    """The error for an answer that takes too long."""
    return AnswerBoundError(f"the answer took longer than {LONGEST_ANSWER / 60:.0f} minutes")


def bound_behind(error: BaseException) -> AnswerBoundError | None:
    """Return the error of this module that a client's error was made from."""
    behind: BaseException | None = error
    seen: set[int] = set()
    while behind is not None and id(behind) not in seen:
        if isinstance(behind, AnswerBoundError):
            return behind
        seen.add(id(behind))
        behind = behind.__cause__ or behind.__context__
    return None


def _since_event(before: int, piece: bytes) -> int:
    """The number of bytes since an event ended."""
    end = max(piece.rfind(b"\n\n"), piece.rfind(b"\r\n\r\n"), piece.rfind(b"\r\r"))
    return before + len(piece) if end < 0 else len(piece) - end


def _too_long(what: str, bytes_read: int) -> AnswerBoundError:
    return AnswerBoundError(f"{what} is longer than {bytes_read // 2**20} MiB, the most that is read")


class Unpacker:
    """Unpacks gzip a bit at a time: a few bytes may stand for gigabytes."""

    def __init__(self) -> None:
        self._inflater = _inflater()

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """Yield what the next part of an answer unpacks to, in pieces of at most 64 KiB.

        Raises:
            httpx2.DecodingError: It can't be unpacked.
        """
        try:
            while part:
                yield from self._of_member(part)
                part = self._inflater.unused_data
                if self._inflater.eof:
                    self._inflater = _inflater()
        except zlib.error as error:
            raise httpx2.DecodingError(f"the answer can't be unpacked: {error}") from error

    def _of_member(self, part: bytes) -> Iterator[bytes]:
        while unpacked := self._inflater.decompress(part, _UNPACKED):
            yield unpacked
            part = self._inflater.unconsumed_tail


def _inflater() -> zlib._Decompress:  # pyright: ignore[reportPrivateUsage] (it has no other name)
    return zlib.decompressobj(16 + zlib.MAX_WBITS)

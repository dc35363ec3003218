"""Read ranges of text files, by lines or by characters, in limited memory whatever the size of the file."""

from __future__ import annotations

import codecs
import os
from typing import BinaryIO

from typing_extensions import TypedDict  # pydantic reads only these before Python 3.12

from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.text.words import with_count

__all__ = ["MAX_EDITED", "ReadResult", "decode_text", "is_binary", "read_characters", "read_lines"]

MAX_EDITED = 10_000_000
"""The size in bytes of the largest file that is edited or compared."""

_DEFAULT_LIMIT = 2000
_MAX_BYTES = 60_000
_HUGE = 10_000_000
_MAX_SCANNED = 500_000_000
_CHUNK = 65_536


class ReadResult(TypedDict):
    """A range of a file by characters.

    Args:
        content: The text of the range.
        truncated: Whether the file continues after it.
        total_chars: Characters in the file.
        offset: Characters before the range.
        chars_read: Characters in the range.
    """

    content: str
    truncated: bool
    total_chars: int
    offset: int
    chars_read: int


def is_binary(head: bytes) -> bool:
    """Whether a file with this beginning is treated as binary: it contains a NUL byte."""
    return b"\0" in head[:8192]


def decode_text(data: bytes, path: str) -> str:
    """Decode the text of a file; raise `FileRefusedError` if it isn't UTF-8 or is too large to edit."""
    if len(data) > MAX_EDITED:
        raise FileRefusedError(display_path(path), f"it is larger than {MAX_EDITED:,} bytes", reason="too_large")
    if is_binary(data):
        raise FileRefusedError(display_path(path), "it is a binary file, not text", reason="not_text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileRefusedError(
            display_path(path), f"it is not UTF-8 text (byte {error.start})", reason="not_text"
        ) from error


def read_lines(stream: BinaryIO, path: str, offset: int, limit: int | None, *, numbered: bool = False) -> str:
    """Read lines of a file from its start, with a note in brackets at the end if the file continues.

    Without a limit at most 2,000 lines are read, and a huge file returns only a note. `numbered` puts its number and a
    tab before each line. Lines that are too far into the file raise `FileRefusedError`.
    """
    size = os.fstat(stream.fileno()).st_size
    head = stream.read(_CHUNK)
    if is_binary(head):
        return f"[{display_path(path)} is a binary file of {with_count(size, 'byte')}; it is not shown]"
    if not head:
        return f"[{display_path(path)} is empty]"
    if size > _HUGE and limit is None:
        return f"[{display_path(path)} is huge: {size:,} bytes. Give offset and limit, or search it]"
    stream.seek(0)
    if not _skip(stream, path, offset):
        return f"[{display_path(path)} has no line after the first {offset:,}]"
    return _piece(stream, offset, _DEFAULT_LIMIT if limit is None else limit, numbered=numbered)


def read_characters(stream: BinaryIO, path: str, offset: int, max_chars: int) -> ReadResult:
    """Read characters of a file from its start, at most 60,000 bytes of them; replace bytes that aren't UTF-8.

    A binary file, or one that is too large to count its characters, raises `FileRefusedError`.
    """
    if os.fstat(stream.fileno()).st_size > _MAX_SCANNED:
        raise FileRefusedError(display_path(path), "it is too large to be read by characters", reason="too_large")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    total, kept, taken, room = 0, list[str](), 0, _MAX_BYTES
    while True:
        chunk = stream.read(_CHUNK)
        if total == 0 and is_binary(chunk):
            raise FileRefusedError(display_path(path), "it is a binary file, not text", reason="not_text")
        text = decoder.decode(chunk, final=not chunk)
        start = max(offset - total, 0)
        if taken < max_chars and start < len(text):
            rest = text[start : start + max_chars - taken]
            piece = rest.encode()[:room].decode("utf-8", "ignore")
            kept.append(piece)
            taken += len(piece)
            room -= len(piece.encode())
            if len(piece) < len(rest):
                max_chars = taken
        total += len(text)
        if total > _MAX_SCANNED:
            raise FileRefusedError(display_path(path), "it is too large to be read by characters", reason="too_large")
        if not chunk:
            break
    return ReadResult(
        content="".join(kept), truncated=offset + taken < total, total_chars=total, offset=offset, chars_read=taken
    )


def _skip(stream: BinaryIO, path: str, lines: int) -> bool:
    """Skip lines; return False if the file ends before the next line."""
    scanned = 0
    while lines:
        piece = stream.readline(_CHUNK)
        scanned += len(piece)
        if not piece:
            return False
        if scanned > _MAX_SCANNED:
            raise FileRefusedError(
                display_path(path),
                f"line {lines:,} is more than {_MAX_SCANNED:,} bytes into the file",
                reason="too_large",
            )
        lines -= piece.endswith(b"\n")
    return bool(stream.read(1)) and stream.seek(-1, os.SEEK_CUR) >= 0


def _piece(stream: BinaryIO, offset: int, limit: int, *, numbered: bool) -> str:
    kept: list[bytes] = []
    size = 0
    cut = False
    while len(kept) < limit and size < _MAX_BYTES:
        line = stream.readline(_MAX_BYTES - size + 1)
        if not line:
            break
        if numbered:
            kept.append(b"%d\t" % (offset + len(kept) + 1) + line)
        else:
            kept.append(line)
        size += len(kept[-1])
        if size > _MAX_BYTES and not line.endswith(b"\n"):
            cut = True
            break
    data = b"".join(kept)
    more = bool(stream.read(1))
    text = _text(data, cut=cut)
    if not more and "\ufffd" not in text:
        return text
    notes: list[str] = []
    if more:
        last = offset + len(kept)
        notes.append(
            f"line {last:,} is too long and cut; max_chars reads on in it, a next line is at offset={last}"
            if cut
            else f"lines {offset + 1:,} to {last:,}; the file continues at offset={last}"
        )
    if "\ufffd" in text and not _is_utf8(data, cut=cut):
        notes.append("bytes that are not UTF-8 are shown as \ufffd")
    return text if not notes else f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{'; '.join(notes)}]"


def _text(data: bytes, *, cut: bool) -> str:
    # A chunk that was cut may end within a character, which is then dropped and not replaced.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not cut)


def _is_utf8(data: bytes, *, cut: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=not cut)
    except UnicodeDecodeError:
        return False
    return True

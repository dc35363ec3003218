"""Pieces of text files, by lines or by characters, in bounded memory whatever the file is."""

from __future__ import annotations

import codecs
import os
from typing import BinaryIO

from typing_extensions import TypedDict  # pydantic reads only these before Python 3.12

from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError

__all__ = ["MAX_EDITED", "ReadResult", "decode_text", "is_binary", "read_characters", "read_lines"]

MAX_EDITED = 10_000_000
"""Bytes of the largest file that is edited or compared."""

_DEFAULT_LIMIT = 2000
_MAX_BYTES = 60_000
_HUGE = 10_000_000
_MAX_SCANNED = 500_000_000
_CHUNK = 65_536


class ReadResult(TypedDict):
    """A piece of a file by characters.

    Args:
        content: The piece.
        truncated: Whether the file goes on after it.
        total_chars: Characters in the file.
        offset: Characters before the piece.
        chars_read: Characters in the piece.
    """

    content: str
    truncated: bool
    total_chars: int
    offset: int
    chars_read: int


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is taken to be no text: it holds a NUL byte."""
    return b"\0" in head[:8192]


def decode_text(data: bytes, path: str) -> str:
    """A whole file's text.

    Raises:
        FileRefusedError: It is no UTF-8 text or too large to be changed in part.
    """
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
    """Some lines of a file, and a last line in brackets when there is more to say.

    Args:
        stream: The file, at its start.
        path: How it is called.
        offset: Lines to skip.
        limit: Lines to read at most; None takes 2,000, and only a note of a huge file.
        numbered: Whether each line begins with its number and a tab.

    Returns:
        The lines as they are, or a note.

    Raises:
        FileRefusedError: The lines are too far into the file.
    """
    size = os.fstat(stream.fileno()).st_size
    head = stream.read(_CHUNK)
    if is_binary(head):
        return f"[{display_path(path)} is a binary file of {size:,} bytes; it is not shown]"
    if not head:
        return f"[{display_path(path)} is empty]"
    if size > _HUGE and limit is None:
        return f"[{display_path(path)} is huge: {size:,} bytes. Give offset and limit, or search it]"
    stream.seek(0)
    if not _skip(stream, path, offset):
        return f"[{display_path(path)} has no line after the first {offset:,}]"
    return _piece(stream, offset, _DEFAULT_LIMIT if limit is None else limit, numbered=numbered)


def read_characters(stream: BinaryIO, path: str, offset: int, max_chars: int) -> ReadResult:
    """Some characters of a file.

    Args:
        stream: The file, at its start.
        path: How it is called.
        offset: Characters to skip.
        max_chars: Characters to read at most; never more than 60,000 bytes of them.

    Returns:
        The piece and where it stands; bytes that are not UTF-8 are replaced.

    Raises:
        FileRefusedError: It is a binary file, or too large to count its characters.
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
            wanted = text[start : start + max_chars - taken]
            piece = wanted.encode()[:room].decode("utf-8", "ignore")
            kept.append(piece)
            taken += len(piece)
            room -= len(piece.encode())
            if len(piece) < len(wanted):
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
    """Skip lines; False when the file ends before there is another."""
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
            else f"lines {offset + 1:,} to {last:,}; the file goes on at offset={last}"
        )
    if "\ufffd" in text and not _is_utf8(data, cut=cut):
        notes.append("bytes that are not UTF-8 are shown as \ufffd")
    return text if not notes else f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{'; '.join(notes)}]"


def _text(data: bytes, *, cut: bool) -> str:
    # A piece that was cut may end within a character, which is then left out and not replaced.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not cut)


def _is_utf8(data: bytes, *, cut: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=not cut)
    except UnicodeDecodeError:
        return False
    return True

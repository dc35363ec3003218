"""Standard input as data: read only from a pipe or a file, with a notice while nothing arrives."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable

from llm_do.errors import InputError

__all__ = ["is_data", "is_unread", "read_bytes", "read_text"]

NOTICE_SECONDS = 2.0
_CHUNK = 1 << 16

LONGEST = 64 * 1024 * 1024
"""Bytes of text that are read from stdin, so that a pipe without an end doesn't fill the memory."""


def is_data(number: int = 0) -> bool:
    """Whether stdin is a pipe or a file; a terminal, a closed stdin and the null device are not."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def is_unread(number: int = 0) -> bool:
    """Whether stdin is data that nothing else is reading, such as the shell loop that has started this process.

    A pipe doesn't tell, but a file that has been read in part belongs to another reader.
    """
    if not is_data(number):
        return False
    try:
        return os.lseek(number, 0, os.SEEK_CUR) == 0
    except OSError:
        return True  # a pipe


def read_bytes(notice: Callable[[str], None], *, limit: int | None = None, number: int = 0) -> bytes:
    """Read stdin to its end, with a notice on a long wait."""
    parts: list[bytes] = []
    size, notified, since = 0, False, time.monotonic()
    try:
        while limit is None or size < limit:
            patience = None if notified else max(0.0, since + NOTICE_SECONDS - time.monotonic())
            ready, _, _ = select.select([number], [], [], patience)
            if not ready:
                notice("waiting for input on stdin; < /dev/null leaves it out")
                notified = True
                continue
            part = os.read(number, _CHUNK)
            if not part:
                break
            parts.append(part)
            size += len(part)
    except OSError as error:
        raise InputError(
            f"stdin can't be read: {error.strerror or error}",
            hint="Pipe a file or a program's output; < /dev/null is none.",
        ) from error
    return b"".join(parts)


def read_text(notice: Callable[[str], None]) -> str | None:
    """Read stdin as text, None if there is only white space."""
    data = read_bytes(notice, limit=LONGEST + 1)
    if len(data) > LONGEST:
        raise InputError(
            f"stdin has more than {LONGEST // 1024**2} MiB",
            hint="No model reads that much at once. `llm-do map` takes many inputs, one on each line.",
        )
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"stdin is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            hint="Convert it, or pass it as a file with --attach -.",
        ) from error
    return text if text.strip() else None

"""Reading a file that someone else may have made: an ordinary one of bounded size, without waiting for anything.

A folder that was cloned or unpacked may have a pipe that no one writes to, a link to a device without an end, or a file
of many gigabytes that takes no space on disk.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["MOST", "open_ordinary", "read_bounded", "read_bounded_text"]

MOST = 16 * 1024 * 1024
"""Bytes of the largest file of code, data or settings."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_bounded(path: Path, most: int = MOST) -> bytes:
    """Return what is in a file.

    Args:
        path: The file; links are followed.
        most: The most bytes that it may have.

    Raises:
        OSError: It can't be read, isn't an ordinary file, or is larger.
        ValueError: The path has a NUL character.
    """
    with open_ordinary(path) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise _too_large(path, most)
        data = stream.read(most + 1)
    if len(data) > most:
        raise _too_large(path, most)
    return data


def open_ordinary(path: Path) -> BinaryIO:
    """Open an ordinary file to read it.

    Args:
        path: The file; links are followed.

    Raises:
        OSError: It can't be read, or isn't an ordinary file.
        ValueError: The path has a NUL character.
    """
    _check(os.stat(path), path)  # noqa: PTH116 (not every device may even be opened)
    stream = os.fdopen(os.open(path, _FLAGS), "rb")
    try:
        _check(os.fstat(stream.fileno()), path)
    except OSError:
        stream.close()
        raise
    return stream


def read_bounded_text(path: Path, most: int = MOST, errors: str = "strict") -> str:
    """Return a file's text, which is UTF-8, with line feeds at the ends of its lines.

    Raises:
        OSError: As `read_bounded`.
        ValueError: As `read_bounded`, or it isn't UTF-8.
    """
    return read_bounded(path, most).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def _check(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))


def _too_large(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most // 1024 // 1024} MiB", str(path))

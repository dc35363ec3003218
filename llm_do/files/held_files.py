"""Files that one part of this process keeps open and nothing else in it may open: closing any descriptor of a file ends
all of the process's locks on it, and SQLite needs its locks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from llm_do.files.refusals import FileRefusedError

__all__ = ["FileId", "hold", "must_not_be_held", "release"]

FileId = tuple[int, int]
"""Device and inode: the file itself, whatever its names are."""

_held: set[FileId] = set()
_lock = threading.Lock()


def hold(files: Iterable[FileId]) -> None:
    """Refuse to open these files until they are released."""
    with _lock:
        _held.update(files)


def release(files: Iterable[FileId]) -> None:
    """Allow these files to be opened again."""
    with _lock:
        _held.difference_update(files)


def must_not_be_held(info: os.stat_result, path: str) -> None:
    """Raise `FileRefusedError` if a file is in use, by whatever name.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     info = os.stat(file.name)
        ...     hold([(info.st_dev, info.st_ino)])
        ...     try:
        ...         must_not_be_held(info, "copy.db")
        ...     except FileRefusedError as error:
        ...         print(error)
        ...     release([(info.st_dev, info.st_ino)])
        copy.db: llm-do keeps its records in it, and reading it would damage them
    """
    if (info.st_dev, info.st_ino) in _held:
        why = "llm-do keeps its records in it, and reading it would damage them"
        raise FileRefusedError(path, why, reason="protected", hint="`llm-do threads` and `llm-do runs` show them.")

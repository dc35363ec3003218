"""The store's file on disk: how it is created, and how a process notices that its file has been deleted.

A process loses its locks on a file when it closes *any* descriptor of that file, whoever opened it, and then the next
process that ends deletes what this one is writing (https://www.sqlite.org/howtocorrupt.html, 2.2). So nothing opens the
file but SQLite, on one connection: what is done here is done by name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from llm_do.files import held_files
from llm_do.files.held_files import FileId
from llm_do.threads.sql.store_errors import LostStoreError

__all__ = ["StoreFile", "create_file", "is_writable", "refuse_if_lost"]

_lost: set[FileId] = set()
"""Databases whose write-ahead log was deleted under an open connection. SQLite would share what it knows of the log
with a second connection, so this process can't use them any more."""


def create_file(path: Path) -> bool:
    """Create an empty database that only its owner may read, if there is none; return whether SQLite has to do it."""
    try:
        os.mknod(path, 0o600 | stat.S_IFREG)
    except FileExistsError:
        return False
    except (AttributeError, OSError):  # not everywhere; where nothing can be created, SQLite's own error says why
        return not path.exists()
    return False


def is_writable(path: Path) -> bool:
    """Whether a store can be written; SQLite creates files beside it."""
    return os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))


def refuse_if_lost(path: Path) -> None:
    """Raise `StoreError` if this process has lost the file's write-ahead log."""
    if _file_id(path) in _lost:
        raise _log_error(path)


class StoreFile:
    """The files of one connection: the database, its write-ahead log, and the log's index.

    Args:
        path: The database, which SQLite has open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids = {file: found for file in _files(path) if (found := _file_id(file)) is not None}
        held_files.hold(self._ids.values())

    @property
    def is_intact(self) -> bool:
        """Whether the files are still those that were opened."""
        return all(_file_id(file) == known for file, known in self._ids.items())

    def check(self) -> None:
        """Raise `StoreError` if one of the files has been deleted or replaced since it was opened."""
        if self.is_intact:
            return
        known = self._ids[self._path]
        if _file_id(self._path) == known:
            _lost.add(known)
            raise _log_error(self._path)
        raise LostStoreError(
            f"{self._path} was moved, deleted or replaced while it was in use;"
            " what this process has written since is lost",
            hint="Leave the store's folder alone while something runs. The next run uses the file that is there then.",
        )

    def release(self) -> None:
        """Say that the files are closed."""
        held_files.release(self._ids.values())


def _files(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}{ending}") for ending in ("", "-wal", "-shm"))


def _file_id(path: Path) -> FileId | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _log_error(path: Path) -> LostStoreError:
    return LostStoreError(
        f"{path}-wal was deleted while this process was writing to it; what was written since is lost",
        hint="Start the program again. Nothing but SQLite may open, copy or delete the files while they are in use.",
    )

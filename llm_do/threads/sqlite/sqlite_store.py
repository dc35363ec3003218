"""`SqliteStore`: threads and the journal in one SQLite file, or in memory. Safe to use from several processes.

It uses write-ahead logging, waits for every commit to reach the disk (`synchronous=FULL`), and has one connection on
one worker thread. What it does is in `sql.sql_store`.
"""

from __future__ import annotations

import os
from pathlib import Path

from llm_do.files.local_folder import FOLDER
from llm_do.threads.sql.open_store import OpenStore, shared_store
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.threads.sqlite.connection import SqliteConnection, connect, translate_sqlite_errors
from llm_do.threads.sqlite.owners import LockFiles

__all__ = ["SqliteStore", "open_file"]


class SqliteStore(SqlStore):
    """Stores threads and the journal in a SQLite file.

    Args:
        path: The file; None keeps everything in memory, for this object only.

    Example:
        >>> import asyncio
        >>> store = SqliteStore(None)
        >>> asyncio.run(store.threads())
        []
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        super().__init__(
            open_file(None) if path is None else shared_store(os.path.realpath(path), lambda: open_file(path))
        )
        if path is not None and path.parent.name == FOLDER:
            self.add_project(path.parent.parent)

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"


def open_file(path: Path | None) -> OpenStore:
    """Return what a process has of a store in a file, or of one in memory."""
    name = str(path) if path is not None else "the store in memory"

    def open_connection() -> SqliteConnection:
        with translate_sqlite_errors(name):
            return connect(path, name)

    owners = LockFiles(path.parent / "owners" if path is not None else None, name)
    return OpenStore(name, open_connection, owners, closes=path is not None)

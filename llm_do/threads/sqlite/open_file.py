"""`OpenFile`: what a process has of one store, which every `SqliteStore` of the same file in it shares.

That is one connection, one lock that says that the process is alive, and the runs that are active in it. None of them
survives a fork: the connection is closed before it, and the child opens its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path

from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sqlite.connection import StoreConnection, connect, translate_sqlite_errors
from llm_do.threads.sqlite.owners import Owners
from llm_do.threads.sqlite.worker import Worker

__all__ = ["OpenFile", "open_file"]

_opened: weakref.WeakValueDictionary[str, OpenFile] = weakref.WeakValueDictionary()
_every: weakref.WeakSet[OpenFile] = weakref.WeakSet()
_lock = threading.Lock()

FORK_PATIENCE = 5.0
"""Seconds that a fork waits for the connection to be closed."""


class OpenFile:
    """One store in this process.

    Args:
        path: The file; None for a store in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.name = str(path) if path is not None else "the store in memory"
        self.owners = Owners(path.parent / "owners" if path is not None else None)
        self.active: dict[str, RunRecord] = {}
        self.conflicted: set[str] = set()
        """The active runs that have lost a conflict, and may begin again."""
        self.claiming = threading.Lock()
        name = self.name

        def open_connection() -> StoreConnection:
            with translate_sqlite_errors(name):
                return connect(path, name)

        self.worker = Worker(open_connection, name)
        self._closing = weakref.finalize(self, _close, self.worker, self.owners)
        _every.add(self)

    def before_fork(self) -> None:
        """Close the connection: SQLite takes the locks of a parent for the child's own, which they aren't."""
        if self.path is not None:
            self.worker.close(FORK_PATIENCE)

    def after_fork(self) -> None:
        """Forget, in the child, what belongs to the parent."""
        self.claiming = threading.Lock()
        self.active.clear()
        self.conflicted.clear()
        self.owners.forget()
        self.worker.forget()


def open_file(path: Path | None) -> OpenFile:
    """Return what this process has of a store: the same for every path that leads to the file."""
    if path is None:
        return OpenFile(None)
    key = os.path.realpath(path)
    with _lock:
        found = _opened.get(key)
        if found is None:
            found = _opened[key] = OpenFile(path)
        return found


def _close(worker: Worker, owners: Owners) -> None:
    worker.close()
    owners.release()


def _before_fork() -> None:
    _lock.acquire()
    for each in list(_every):
        each.before_fork()


def _after_fork_in_parent() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    for each in list(_every):
        each.after_fork()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

"""`OpenStore`: what a process has of one store, which every object for the same store in it shares.

That is one connection, the mark that says that the process is alive, and the runs that are active in it. None of them
survives a fork: the connection is closed before it, and the child opens its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Owners, StoreConnection
from llm_do.threads.sql.worker import Worker

__all__ = ["OpenStore", "shared_store"]

_opened: weakref.WeakValueDictionary[str, OpenStore] = weakref.WeakValueDictionary()
_every: weakref.WeakSet[OpenStore] = weakref.WeakSet()
_lock = threading.Lock()

FORK_PATIENCE = 5.0
"""Seconds that a fork waits for the connection to be closed."""


class OpenStore:
    """One store in this process.

    Args:
        name: The store's name in messages.
        connect: Opens a connection.
        owners: The processes that use the store.
        closes: Whether the store is still there when the connection is closed; one in memory isn't.
    """

    def __init__(
        self, name: str, connect: Callable[[], StoreConnection], owners: Owners, *, closes: bool = True
    ) -> None:
        self.name = name
        self.owners = owners
        self.closes = closes
        self.active: dict[str, RunRecord] = {}
        self.conflicted: set[str] = set()
        """The active runs that have lost a conflict, and may begin again."""
        self.claimed: set[str] = set()
        """The inputs of batches that this process has claimed, and whose runs haven't begun."""
        self.taking = 0
        """The number of claims under way, whose inputs aren't known yet."""
        self.claiming = threading.Lock()
        self.roots: set[Path] = set()
        """The folders of projects whose runs this process records in the store, or reads from it."""
        self.worker = Worker(connect, name)
        self._closing = weakref.finalize(self, _close, self.worker, self.owners)
        _every.add(self)

    def has_claimed(self, run: RunRecord) -> bool:
        """Whether this process has claimed the input of a run that hasn't begun, or is about to learn that it has."""
        return run.batch is not None and not run.attempt and (self.taking > 0 or run.id in self.claimed)

    def before_fork(self) -> None:
        """Close the connection: a child must not use what belongs to its parent."""
        if self.closes:
            self.worker.close(FORK_PATIENCE)

    def after_fork(self) -> None:
        """Forget, in the child, what belongs to the parent."""
        self.claiming = threading.Lock()
        self.active.clear()
        self.conflicted.clear()
        self.claimed.clear()
        self.taking = 0
        self.owners.forget()
        self.worker.forget()


def shared_store(key: str, create: Callable[[], OpenStore]) -> OpenStore:
    """Return what this process has of the store that a key stands for, the same for every caller."""
    with _lock:
        found = _opened.get(key)
        if found is None:
            found = _opened[key] = create()
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

"""Which recording processes are alive: each locks a file of its own, and the lock ends with the process."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from llm_do._machine_limits import hint_for
from llm_do.errors import StoreError
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.store_errors import no_locks_error
from llm_do.threads.sqlite.queue_files import lock_alone

__all__ = ["LockFiles"]


class LockFiles:
    """The processes of one store, by their lock files.

    Args:
        folder: Where their lock files are; None for a store that belongs to this process alone.
        name: The store's name in messages.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._folder = folder
        self._name = name
        self._descriptor: int | None = None
        self.own = uuid.uuid4().hex

    def claim(self) -> str:
        """Return this process's id, and mark it as alive."""
        if self._folder is not None and self._descriptor is None:
            try:
                self._folder.mkdir(exist_ok=True)
                self._descriptor = os.open(self._folder / self.own, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StoreError(
                    f"{self._name} can't be written: {error.strerror or error}",
                    hint=hint_for(error, "make its folder writable"),
                ) from error
            self._mark(self._descriptor)
        return self.own

    def _mark(self, descriptor: int) -> None:
        try:
            lock_alone(descriptor)
        except OSError as error:
            self.release()
            raise no_locks_error(self._name) from error

    def holds(self, owner: str) -> bool:
        """Whether this process is marked as alive under an id."""
        return owner == self.own

    def alive(self, db: Database, owner: str) -> bool:
        """Check whether a process is alive, and remove its file if it isn't."""
        if owner == self.own:
            return True
        if self._folder is None or not owner.isalnum():
            return False
        path = self._folder / owner
        try:
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if not lock_alone(descriptor):
                return True
            with contextlib.suppress(OSError):
                path.unlink()
            return False
        except OSError as error:
            raise no_locks_error(self._name) from error
        finally:
            os.close(descriptor)

    def forget(self) -> None:
        """Be another process than the one this was forked from, which keeps its lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self.own = uuid.uuid4().hex

    def release(self) -> None:
        """Stop marking this process as alive."""
        if self._descriptor is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / self.own).unlink()
            os.close(self._descriptor)
            self._descriptor = None
            self.own = uuid.uuid4().hex

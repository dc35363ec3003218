"""Which recording processes are alive: each holds an advisory lock, on a connection that does nothing else.

A lock is looked for in the server's list of locks. Asking for it would be granted to the session that holds it. The
lock ends with the connection, so a process whose connection breaks is a new owner from then on.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from llm_do.threads.postgres.failures import translate_postgres_errors
from llm_do.threads.postgres.target import Target
from llm_do.threads.sql.database import Database

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["AdvisoryLocks"]

_HELD = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid = CAST(? AS oid) AND objid = CAST(? AS oid)"
)

_parents: list[Any] = []
"""Connections of the process that this one was forked from: they are neither used nor closed here."""


class AdvisoryLocks:
    """The processes of one store.

    Args:
        target: The store.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._guard = threading.Lock()
        self._held: _HeldLock | None = None
        self.own = uuid.uuid4().hex

    def claim(self) -> str:
        """Return this process's id, and mark it as alive: under another id if its lock was lost."""
        with self._guard:
            if self._held is not None and self._held.is_lost:
                self._held.release()
                self._held = None
                self.own = uuid.uuid4().hex
            if self._held is None:
                with translate_postgres_errors(self._target.name):
                    self._held = _HeldLock(self._target, self._key(self.own))
            return self.own

    def holds(self, owner: str) -> bool:
        """Whether this process is marked as alive under an id."""
        held = self._held
        return owner == self.own and held is not None and not held.is_lost

    def alive(self, db: Database, owner: str) -> bool:
        """Whether a process is alive."""
        if owner == self.own:
            return self.holds(owner)
        key = self._key(owner) & (2**64 - 1)
        return db.execute(_HELD, (key >> 32, key & (2**32 - 1))).fetchone() is not None

    def forget(self) -> None:
        """Be another process than the one this was forked from, which keeps its lock."""
        self._guard = threading.Lock()
        if self._held is not None:
            self._held.leave_to_parent()
            self._held = None
        self.own = uuid.uuid4().hex

    def release(self) -> None:
        """Stop marking this process as alive."""
        with self._guard:
            if self._held is not None:
                self._held.release()
                self._held = None
                self.own = uuid.uuid4().hex

    def _key(self, owner: str) -> int:
        return self._target.lock_key("owner", owner)


class _HeldLock:
    """An advisory lock on a connection of its own, which a thread watches.

    Args:
        target: The store.
        key: The lock.
    """

    def __init__(self, target: Target, key: int) -> None:
        self.is_lost = False
        self._connection: Connection[Any] = target.connect("owner")
        try:
            self._connection.execute(f"SELECT pg_advisory_lock({key})".encode())
            self._socket = self._connection.fileno()
            self._end, self._wake = socket.socketpair()
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._watch, name="llm-do-owner", daemon=True)
        with suppress(RuntimeError):  # since Python 3.12, a process can't start threads while it exits
            self._thread.start()

    def _watch(self) -> None:
        """Wait until the connection breaks or is released."""
        with selectors.DefaultSelector() as selector, self._end:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._end, selectors.EVENT_READ)
            try:
                while all(key.fileobj is not self._end for key, _ in selector.select()):
                    self._connection.pgconn.consume_input()
            except Exception:  # noqa: BLE001 (whatever it is, the server can't be heard any more)
                pass
            finally:
                self.is_lost = True
                with suppress(Exception):
                    self._connection.close()

    def release(self) -> None:
        """Close the connection."""
        self._wake.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(1)
        elif not self.is_lost:
            self._connection.close()

    def leave_to_parent(self) -> None:
        """Close the copies of the parent's descriptors, so that its lock ends with it."""
        _parents.append(self._connection)
        if not self.is_lost:
            os.close(self._socket)
            self._end.close()
            self._wake.close()

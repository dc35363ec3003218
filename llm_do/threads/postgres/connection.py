"""`PostgresConnection`: transactions on a PostgreSQL server, which may be restarted in the middle of one.

One process writes at a time, as on SQLite: each writing transaction begins with the store's advisory lock, for which
processes wait in the order in which they asked, and reads what all earlier ones have committed.

A connection that is lost is opened again for a while, and the transaction begins again. If it was lost at the commit,
the row of this connection in `store_writers` says whether the server has carried it out. If a server
is away for longer, all requests made meanwhile fail together, and later ones make one attempt each.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from llm_do.errors import StoreError
from llm_do.threads.postgres.failures import PATIENCE, driver_error, is_lost, is_transient, translate_postgres_errors
from llm_do.threads.postgres.statements import PostgresDatabase
from llm_do.threads.postgres.target import Target
from llm_do.threads.sql.migrations import MIGRATIONS, migrate
from llm_do.threads.sql.store_errors import UncertainCommitError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresConnection", "connect"]

T = TypeVar("T")

RECONNECTING = 15.0
"""Seconds in which a connection that was lost is opened again, in all: a server takes a few to restart."""

ATTEMPTS = 5
"""How often a transaction begins that the server asks to begin again."""

STOPPED = 20
"""Seconds after which the server ends a transaction whose process does nothing: it may have been stopped."""

_TABLES = b"""
CREATE TABLE store_version (version BIGINT NOT NULL);
INSERT INTO store_version VALUES (0);
CREATE TABLE store_writers (id TEXT PRIMARY KEY, number BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL)
"""

_CLEAN = b"DELETE FROM store_writers WHERE time < now() - interval '1 day'"
"""Removes what processes that were killed have left; a commit that was lost is asked about at once."""


class PostgresConnection:
    """A connection to a store.

    Args:
        target: The store.
    """

    place = "database"

    def __init__(self, target: Target) -> None:
        self._target = target
        self._id = uuid.uuid4().hex
        self._number = 0
        self._writes = False
        self._until: float | None = None
        self._lock = f"SELECT pg_advisory_xact_lock({target.lock_key('writes')})".encode()
        self._connection = self._opened()
        self.db = PostgresDatabase(self._connection)

    def _opened(self) -> Connection[Any]:
        connection = self._target.connect("store")
        limits = f"SET lock_timeout = '{PATIENCE:g}s'; SET idle_in_transaction_session_timeout = '{STOPPED}s'"
        connection.execute(limits.encode(), prepare=False)
        return connection

    @property
    def is_intact(self) -> bool:
        """Whether it can be used for another transaction."""
        return not self._connection.broken and not self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; a failed statement leaves it open for its savepoint."""
        return self.is_intact and self._connection.info.transaction_status != 0  # 0 is idle

    @property
    def name(self) -> str:
        """The store's name in messages."""
        return self._target.name

    def check(self) -> None:
        """What the server has committed is in the store."""

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise psycopg's errors as `StoreError`s."""
        return translate_postgres_errors(self._target.name)

    def carry_out(self, transaction: Callable[[], T], *, writes: bool) -> T:
        """Call a function that is one transaction, again if the connection is lost or the server asks for it."""
        attempts = 0
        while True:
            try:
                value = transaction()
            except UncertainCommitError:
                raise
            except Exception as error:
                cause = driver_error(error)
                attempts += 1
                if is_transient(cause) and attempts < ATTEMPTS:
                    continue
                if not is_lost(cause):
                    raise
                if attempts >= ATTEMPTS:
                    raise cause from None  # it concerns the whole transaction, whichever of its jobs has met it
                self._reconnect()
            else:
                self._until = None
                return value

    def begin(self, *, writes: bool) -> None:
        """Begin a transaction; one that writes waits for its turn."""
        self._writes = writes
        start = b"BEGIN; " + self._lock if writes else b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._connection.execute(start, prepare=False)

    def commit(self) -> None:
        """End a transaction; returns once it is on disk."""
        if not self._writes:
            self._connection.execute(b"COMMIT")
            return
        self._number += 1
        mark = (
            f"INSERT INTO store_writers VALUES ('{self._id}', {self._number}, now()) ON CONFLICT (id) DO UPDATE"
            " SET number = excluded.number, time = excluded.time; COMMIT"
        )
        try:
            self._connection.execute(mark.encode(), prepare=False)
        except Exception as error:
            if not is_lost(error):
                raise
            if not self._was_committed():
                raise

    def _was_committed(self) -> bool:
        """Connect again, and find out whether the server has carried out the last commit."""
        try:
            with self.translate_errors():
                attempts = 0
                while True:
                    self._reconnect()
                    try:
                        return self._is_committed()
                    except Exception as error:
                        attempts += 1
                        if not is_lost(error) or attempts >= ATTEMPTS:
                            raise
        except StoreError as error:
            text = f"{error.message}; whether what was written last is stored isn't known"
            raise UncertainCommitError(text, hint=error.hint) from error

    def _is_committed(self) -> bool:
        """Whether the server has carried out the last commit; its lock says that it has come to an end."""
        self._connection.execute(b"BEGIN; " + self._lock, prepare=False)
        try:
            found = self.db.execute("SELECT 1 FROM store_writers WHERE id = ? AND number = ?", (self._id, self._number))
            return found.fetchone() is not None
        finally:
            self._connection.execute(b"COMMIT")

    def _reconnect(self) -> None:
        """Open the connection again, waiting for a server that is being restarted: once until a transaction ends."""
        with suppress(Exception):
            self._connection.close()
        until = self._until = self._until or time.monotonic() + RECONNECTING
        pause = 0.05
        while True:
            try:
                self._connection = self._opened()
            except Exception as error:
                if not is_lost(error) or time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
                pause = min(pause * 1.5, 1.0)
            else:
                self.db = PostgresDatabase(self._connection)
                return

    def roll_back(self) -> None:
        """Undo what the transaction has done."""
        with suppress(Exception):  # the error that is the reason is raised, and a lost connection has undone it
            if self.in_transaction:
                self._connection.execute(b"ROLLBACK")

    def version(self) -> int:
        """Return the store's schema version; 0 if there is none."""
        if not self._exists("store_version"):
            return 0
        row = self.db.execute("SELECT version FROM store_version").fetchone()
        return int(row[0]) if row is not None else 0

    def set_version(self, version: int) -> None:
        """Set the store's schema version, in the current transaction."""
        self.db.execute("UPDATE store_version SET version = ?", (version,))

    def prepare(self) -> None:
        """Create the schema and the tables that say its version and its writers, and migrate the others."""
        if not self._exists("store_version"):
            self.begin(writes=True)
            try:
                if not self.db.execute(
                    "SELECT 1 FROM pg_namespace WHERE nspname = ?", (self._target.schema,)
                ).fetchone():
                    self._connection.execute(f"CREATE SCHEMA {self._target.schema}".encode())
                if not self._exists("store_version"):
                    self._connection.execute(_TABLES, prepare=False)
                self._connection.execute(b"COMMIT")
            except BaseException:
                self.roll_back()
                raise
        if self.version() != len(MIGRATIONS):
            migrate(self, self._target.name)
        if not self._is_read_only():
            self._connection.execute(_CLEAN)

    def _is_read_only(self) -> bool:
        row = self._connection.execute(b"SHOW transaction_read_only").fetchone()
        return row is not None and row[0] == "on"

    def _exists(self, table: str) -> bool:
        row = self.db.execute("SELECT to_regclass(?)", (f"{self._target.schema}.{table}",)).fetchone()
        return row is not None and row[0] is not None

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):  # what is on disk is; nothing waits for an answer
            if self.is_intact and self._number:
                self.db.execute("DELETE FROM store_writers WHERE id = ?", (self._id,))
        with suppress(Exception):
            self._connection.close()


def connect(target: Target) -> PostgresConnection:
    """Connect to a store, and create or migrate its tables."""
    with translate_postgres_errors(target.name):
        connection = PostgresConnection(target)
        try:
            # Whatever it has done before the connection is lost is done, or isn't in the store at all.
            connection.carry_out(connection.prepare, writes=True)
        except BaseException:
            connection.close()
            raise
        return connection

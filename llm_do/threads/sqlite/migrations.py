"""The schema of the SQLite store as a list of small migrations, applied to a store of any age."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

from llm_do.errors import StoreError

__all__ = ["MIGRATIONS", "migrate", "roll_back_on_error", "version_of"]

Migration = Callable[[sqlite3.Connection], object]


def _threads(db: sqlite3.Connection) -> None:
    """Threads, and messages as a tree: each points to its parent, so that forks share their history."""
    db.execute(
        "CREATE TABLE threads (user TEXT NOT NULL, id TEXT NOT NULL, config TEXT NOT NULL, state TEXT NOT NULL,"
        " toolkits TEXT NOT NULL, head TEXT, branches TEXT NOT NULL, carried TEXT NOT NULL, revision TEXT NOT NULL,"
        " turn TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, PRIMARY KEY (user, id))"
    )
    db.execute(
        "CREATE TABLE messages (id TEXT NOT NULL UNIQUE, parent TEXT, depth INTEGER NOT NULL, time REAL NOT NULL,"
        " run TEXT, metadata TEXT, body TEXT NOT NULL)"
    )
    db.execute("CREATE INDEX messages_parent ON messages (parent) WHERE parent IS NOT NULL")


def _users(db: sqlite3.Connection) -> None:
    """The state of each user, shared by all their threads."""
    db.execute("CREATE TABLE users (id TEXT PRIMARY KEY, state TEXT NOT NULL, revision TEXT NOT NULL)")


def _journal(db: sqlite3.Connection) -> None:
    """Runs and their events; a run's changes to its thread are pending until the run ends."""
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, status TEXT NOT NULL, entry TEXT NOT NULL, thread TEXT, user TEXT,"
        " started REAL NOT NULL, finished REAL, owner TEXT NOT NULL, turn TEXT, tip TEXT, state TEXT, user_state TEXT,"
        " toolkits TEXT)"
    )
    db.execute("CREATE INDEX runs_started ON runs (started)")
    db.execute("CREATE INDEX runs_thread ON runs (thread, started)")
    db.execute("CREATE INDEX runs_open ON runs (status) WHERE status = 'running'")
    db.execute(
        "CREATE TABLE events (run TEXT NOT NULL, seq INTEGER NOT NULL, time REAL NOT NULL, type TEXT NOT NULL,"
        " thread TEXT, user TEXT, data TEXT NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID"
    )
    db.execute("CREATE INDEX events_thread ON events (thread, time) WHERE thread IS NOT NULL")


def _turns(db: sqlite3.Connection) -> None:
    """When a run that has lost a conflict began to wait for its thread; and lists of threads without sorting them."""
    db.execute("ALTER TABLE runs ADD COLUMN claimed REAL")
    db.execute("CREATE INDEX threads_updated ON threads (updated)")
    db.execute("CREATE INDEX threads_of_user ON threads (user, updated)")


def _exchanges(db: sqlite3.Connection) -> None:
    """What models were sent, each part of it once; and what each run has used."""
    db.execute(
        "CREATE TABLE objects (digest BLOB NOT NULL UNIQUE, uses INTEGER NOT NULL, links BLOB NOT NULL,"
        " body TEXT NOT NULL)"
    )
    db.execute(
        "CREATE TABLE exchanges (run TEXT NOT NULL, number INTEGER NOT NULL, call TEXT NOT NULL, path TEXT NOT NULL,"
        " agent TEXT NOT NULL, request INTEGER NOT NULL, attempt INTEGER NOT NULL, purpose TEXT NOT NULL,"
        " model TEXT NOT NULL, setup BLOB NOT NULL, history BLOB NOT NULL, begun REAL NOT NULL, ended REAL NOT NULL,"
        " first_token REAL, answer TEXT NOT NULL, UNIQUE (run, number))"
    )
    db.execute("CREATE TABLE exchange_size (bytes INTEGER NOT NULL)")
    db.execute("INSERT INTO exchange_size VALUES (0)")
    db.execute(
        "CREATE TABLE spent (run TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, requests INTEGER NOT NULL,"
        " input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, total_tokens INTEGER NOT NULL, cost REAL,"
        " PRIMARY KEY (run, agent, model)) WITHOUT ROWID"
    )
    for column in ("usage TEXT", "models TEXT", "cost REAL", "exchanges INTEGER NOT NULL DEFAULT 0", "dropped TEXT"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    db.execute("CREATE INDEX runs_exchanges ON runs (started) WHERE exchanges > 0 AND dropped IS NULL")


def _durable_runs(db: sqlite3.Connection) -> None:
    """Attempts at durable runs: what they began with, and each step as soon as it has ended."""
    for column in ("attempt INTEGER NOT NULL DEFAULT 0", "beginning TEXT", "start TEXT", "result TEXT"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    db.execute(
        "CREATE TABLE steps (run TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, done INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID"
    )


MIGRATIONS: Sequence[Migration] = (_threads, _users, _journal, _turns, _exchanges, _durable_runs)
"""Each migrates a store from the version that is its index to the next. Append only."""


@contextmanager
def roll_back_on_error(db: sqlite3.Connection) -> Generator[None]:
    """Roll a transaction back if it fails, and raise the error that says why; SQLite may have rolled back already."""
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")
        raise


def version_of(db: sqlite3.Connection) -> int:
    """Return a store's schema version; 0 for an empty file."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, name: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate a store to the latest version, one transaction a step; another process may do the same concurrently."""
    version = version_of(db)
    if version > len(migrations):
        raise StoreError(
            f"{name} was written by a newer llm-do (store version {version}; this llm-do supports {len(migrations)})",
            hint="Use that version or another folder; nothing was changed.",
        )
    while version < len(migrations):
        db.execute("BEGIN IMMEDIATE")
        with roll_back_on_error(db):
            version = version_of(db)
            if version < len(migrations):
                migrations[version](db)
                version += 1
                db.execute(f"PRAGMA user_version = {version}")
            db.execute("COMMIT")

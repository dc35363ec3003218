"""The schema of a store as a list of small migrations, applied to a store of any age.

Types are those of SQLite; the other database knows what they are called there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm_do.errors import StoreError
from llm_do.threads.sql.database import Database, StoreConnection
from llm_do.threads.sql.transactions import roll_back_on_error

__all__ = ["MIGRATIONS", "migrate"]

Migration = Callable[[Database], object]


def _threads(db: Database) -> None:
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


def _users(db: Database) -> None:
    """The state of each user, shared by all their threads."""
    db.execute("CREATE TABLE users (id TEXT PRIMARY KEY, state TEXT NOT NULL, revision TEXT NOT NULL)")


def _journal(db: Database) -> None:
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


def _turns(db: Database) -> None:
    """When a run that has lost a conflict began to wait for its thread; and lists of threads without sorting them."""
    db.execute("ALTER TABLE runs ADD COLUMN claimed REAL")
    db.execute("CREATE INDEX threads_updated ON threads (updated)")
    db.execute("CREATE INDEX threads_of_user ON threads (user, updated)")


def _exchanges(db: Database) -> None:
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


def _durable_runs(db: Database) -> None:
    """Attempts at durable runs: what they began with, and each step as soon as it has ended."""
    for column in ("attempt INTEGER NOT NULL DEFAULT 0", "beginning TEXT", "start TEXT", "result TEXT"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    db.execute(
        "CREATE TABLE steps (run TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, done INTEGER NOT NULL,"
        " attempt INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID"
    )


def _batches(db: Database) -> None:
    """Batches of inputs, each of which is a run that waits on the queue until a process claims it."""
    db.execute(
        "CREATE TABLE batches (id TEXT PRIMARY KEY, name TEXT NOT NULL, entry TEXT, inputs TEXT NOT NULL,"
        " total INTEGER NOT NULL, project TEXT NOT NULL, options TEXT NOT NULL, budget REAL, budget_each REAL,"
        " concurrency INTEGER NOT NULL, created REAL NOT NULL, used REAL NOT NULL)"
    )
    for column in ("batch TEXT", "ordinal INTEGER", "input TEXT"):
        db.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    db.execute("CREATE INDEX runs_of_batch ON runs (batch, ordinal, status) WHERE batch IS NOT NULL")
    db.execute("CREATE INDEX runs_queued ON runs (batch, ordinal) WHERE status = 'queued'")
    db.execute("CREATE INDEX runs_unfinished ON runs (batch) WHERE status IN ('running', 'stopped', 'suspended')")


def _projects(db: Database) -> None:
    """The files that durable runs began with."""
    db.execute("CREATE TABLE projects (digest TEXT PRIMARY KEY, files BLOB NOT NULL, added REAL NOT NULL)")
    db.execute("ALTER TABLE runs ADD COLUMN project TEXT")


def _questions(db: Database) -> None:
    """What a durable run asks a person, and the answers."""
    db.execute(
        "CREATE TABLE questions (id TEXT PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL,"
        ' kind TEXT NOT NULL, asked REAL NOT NULL, request TEXT NOT NULL, answer TEXT, "by" TEXT, answered REAL,'
        " UNIQUE (run, key))"
    )
    db.execute("CREATE INDEX questions_open ON questions (run) WHERE answer IS NULL")


def _memories(db: Database) -> None:
    """What agents remember: for a thread, a user, or a project in a store that several share."""
    db.execute(
        "CREATE TABLE memories (number INTEGER PRIMARY KEY, scope TEXT NOT NULL, project TEXT NOT NULL,"
        " user TEXT NOT NULL, thread TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, words TEXT NOT NULL,"
        " created REAL NOT NULL, updated REAL NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL,"
        " UNIQUE (scope, project, user, thread, id))"
    )


def _histories(db: Database) -> None:
    """Find out quickly whether a message is the end of a history, which a thread that is deleted may share."""
    db.execute("CREATE INDEX threads_head ON threads (head) WHERE head IS NOT NULL")
    db.execute("CREATE INDEX threads_branched ON threads (updated) WHERE branches <> '[]'")


def _tokens(db: Database) -> None:
    """Sum up what the runs of a thread have used from an index alone, however many they are."""
    db.execute("ALTER TABLE runs ADD COLUMN tokens INTEGER")
    db.execute(
        "UPDATE runs SET tokens = (SELECT CAST(coalesce(sum(total_tokens), 0) AS BIGINT) FROM spent"
        " WHERE spent.run = runs.id) WHERE usage IS NOT NULL"
    )
    db.execute("CREATE INDEX runs_used ON runs (thread, user, tokens, cost) WHERE thread IS NOT NULL")


def _unended(db: Database) -> None:
    """Find out what else is open on a thread, which may have had very many runs."""
    db.execute(
        "CREATE INDEX runs_unended ON runs (thread, started) WHERE status IN ('running', 'stopped', 'suspended')"
    )


MIGRATIONS: Sequence[Migration] = (
    _threads,
    _users,
    _journal,
    _turns,
    _exchanges,
    _durable_runs,
    _batches,
    _projects,
    _questions,
    _memories,
    _histories,
    _tokens,
    _unended,
)
"""Each migrates a store from the version that is its index to the next. Append only."""


def migrate(connection: StoreConnection, name: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate a store to the latest version, one transaction a step; another process may do the same concurrently."""
    version = connection.version()
    if version > len(migrations):
        raise StoreError(
            f"{name} was written by a newer llm-do (store version {version}; this llm-do supports {len(migrations)})",
            hint=f"Use that version or another {connection.place}; nothing was changed.",
        )
    while version < len(migrations):
        connection.begin(writes=True)
        with roll_back_on_error(connection):
            version = connection.version()
            if version < len(migrations):
                migrations[version](connection.db)
                version += 1
                connection.set_version(version)
            connection.commit()

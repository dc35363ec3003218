"""`PostgresStore`: threads and the journal in a PostgreSQL database, which processes on many machines may share.

What it does is in `sql.sql_store`.
"""

from __future__ import annotations

from llm_do.runtime.record.redaction import protect_values
from llm_do.threads.postgres.connection import connect
from llm_do.threads.postgres.owners import AdvisoryLocks
from llm_do.threads.postgres.target import Target, target_of
from llm_do.threads.sql.open_store import OpenStore, shared_store
from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["PostgresStore", "open_database"]


class PostgresStore(SqlStore):
    """Stores threads and the journal in a PostgreSQL database; needs the extra `postgres`.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; its tables are in the schema `llm_do`, unless
            `?schema=NAME` names another one. What it leaves out comes from `PGUSER` and the other variables of libpq.

    Raises:
        StoreError: psycopg isn't installed.
        UsageError: The URL isn't valid.
    """

    def __init__(self, url: str) -> None:
        protect_values({"STORE_URL": url})
        target = target_of(url)
        super().__init__(shared_store(url, lambda: open_database(target)))

    def __repr__(self) -> str:
        return f"PostgresStore({self.name!r})"


def open_database(target: Target) -> OpenStore:
    """Return what a process has of a store in a database."""
    return OpenStore(target.name, lambda: connect(target), AdvisoryLocks(target))

"""What there is in a database, without changing anything: for `llm-do doctor`."""

from __future__ import annotations

from llm_do.threads.postgres.failures import translate_postgres_errors
from llm_do.threads.postgres.target import target_of
from llm_do.threads.sql.migrations import MIGRATIONS

__all__ = ["database_state"]

_SIZE = b"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"


def database_state(url: str) -> str:
    """Describe the store at a URL in a sentence.

    Raises:
        StoreError: It can't be reached or used.
        UsageError: The URL isn't valid.
    """
    target = target_of(url)
    with translate_postgres_errors(target.name), target.connect("doctor") as connection:
        (server,) = connection.execute("SHOW server_version").fetchone() or ("?",)
        words = f"{target.name}, PostgreSQL {server}"
        (made,) = connection.execute("SELECT to_regclass(%s)", (f"{target.schema}.store_version",)).fetchone() or (
            None,
        )
        if made is None:
            return f"{words}, empty: the first run creates its tables"
        (version,) = connection.execute("SELECT version FROM store_version").fetchone() or (0,)
        if version != len(MIGRATIONS):
            newer = "newer than this llm-do" if version > len(MIGRATIONS) else "migrated by the next run"
            return f"{words}, of schema version {version}: {newer}"
        (size,) = connection.execute(_SIZE, (target.schema,)).fetchone() or (0,)
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone() or (0,)
        return f"{words}, {runs:,} run{'' if runs == 1 else 's'}, {int(size or 0):,} bytes"

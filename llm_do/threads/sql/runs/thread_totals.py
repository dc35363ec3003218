"""What the recorded runs of each thread have used together."""

from __future__ import annotations

from llm_do.runtime.record.stored_records import ThreadRecord, ThreadTotals
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database

__all__ = ["threads_with_totals"]

# The index `runs_used` alone answers each of these, without sorting: a thread may have very many runs, and very many
# users a thread of the same id. A user that is missing isn't equal to anything, hence one part for each case.
_PART = """
SELECT user, id,
  (SELECT CAST(sum(tokens) AS BIGINT) FROM runs WHERE thread = shown.id AND runs.user {owner}),
  (SELECT CASE WHEN sum(CASE WHEN cost IS NULL THEN tokens ELSE 0 END) > 0 THEN NULL ELSE sum(cost) END
    FROM runs WHERE thread = shown.id AND runs.user {owner})
FROM shown WHERE user {chosen}
"""

_TOTALS = (
    "WITH shown AS (SELECT user, id FROM threads{latest})"
    + _PART.format(owner="= shown.user", chosen="<> ''")
    + "UNION ALL"
    + _PART.format(owner="IS NULL", chosen="= ''")
)


def threads_with_totals(
    db: Database, user: str | None, *, every_user: bool, limit: int | None
) -> list[tuple[ThreadRecord, ThreadTotals]]:
    """List threads, most recent first, with what their runs have used; a run's row counts the calls inside it."""
    latest, values = rows.latest_threads(user, every_user=every_user, limit=limit)
    found = {
        (owner, thread): ThreadTotals(tokens, cost)
        for owner, thread, tokens, cost in db.execute(_TOTALS.format(latest=latest), values)
    }
    records = rows.thread_records(db, user, every_user=every_user, limit=limit)
    return [(each, found[each.user_id or "", each.id]) for each in records]

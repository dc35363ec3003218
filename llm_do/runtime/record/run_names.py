"""The run that a person means by an id or its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import RunFilter, RunRecord
from llm_do.text.generated_ids import MOST_LISTED, WRITE_MORE, several_begin_alike

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = ["named_run", "run_by_name"]


async def named_run(store: ThreadStore, name: str) -> RunRecord:
    """Return the run with an id, or the one whose id begins with it.

    Args:
        store: The store.
        name: The id, or a beginning of it that no other has.

    Raises:
        UsageError: No run has it, or several begin with it; those are listed.
    """
    found = await run_by_name(store, name)
    if found is None:
        raise UsageError(f"no run has the id {name!r}", hint="`llm-do runs list` shows the runs.")
    return found


async def run_by_name(store: ThreadStore, name: str, user_id: str | None = None) -> RunRecord | None:
    """Return the run with an id, or the one whose id begins with it; None if there is none.

    Args:
        store: The store.
        name: The id, or a beginning of it that no other has.
        user_id: Only this user's runs, which the ids of others neither hide nor make ambiguous; None for all.

    Raises:
        UsageError: Several begin with it; they are listed. Or the name is empty, with which every id begins.
    """
    if not name:
        raise UsageError("the run's id is empty", hint="`llm-do runs list` shows the runs.")
    found = await store.run(name)
    if found is not None and user_id in (None, found.user_id):
        return found
    runs = await store.runs(limit=MOST_LISTED + 1, filter=RunFilter(prefix=name, user_id=user_id))
    if len(runs) < 2:
        return runs[0] if runs else None
    raise UsageError(several_begin_alike("runs", name, [run.id for run in runs]), hint=WRITE_MORE)

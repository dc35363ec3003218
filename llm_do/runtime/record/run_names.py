"""The run that a person means by an id or its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import RunFilter, RunRecord
from llm_do.text.sanitizer import sanitize

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore

__all__ = ["named_run"]

_MOST = 5
"""Ids that are listed where several begin alike."""


async def named_run(store: ThreadStore, name: str) -> RunRecord:
    """Return the run with an id, or the one whose id begins with it.

    Args:
        store: The store.
        name: The id, or a beginning of it that no other has.

    Raises:
        UsageError: No run has it, or several begin with it; those are listed.
    """
    found = await store.run(name)
    if found is not None:
        return found
    several = [run.id for run in await store.runs(limit=_MOST + 1, filter=RunFilter(prefix=name))]
    if not several:
        raise UsageError(f"no run has the id {name!r}", hint="`llm-do runs list` shows the runs.")
    more = " and more" if len(several) > _MOST else ""
    raise UsageError(
        f"several runs have ids that begin with {name!r}: {', '.join(map(sanitize, several[:_MOST]))}{more}",
        hint="Write more of the id.",
    )

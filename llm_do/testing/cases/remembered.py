"""What agents remember before a test: a store of its own in memory, with the texts that the test names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from llm_do.concurrency.event_loops import run_blocking
from llm_do.errors import UsageError
from llm_do.project.store_location import shared_name
from llm_do.runtime.record.store.memories import Memory, MemoryOwner
from llm_do.threads.opened_stores import memory_store

if TYPE_CHECKING:
    from llm_do.formats.memory_scopes import MemoryScope
    from llm_do.project.project import Project
    from llm_do.testing.cases.case import Case
    from llm_do.threads.sqlite.sqlite_store import SqliteStore

__all__ = ["store_of"]


def store_of(case: Case, project: Project) -> SqliteStore:
    """Create the store of a case.

    Args:
        case: The case.
        project: The project that it runs.

    Raises:
        UsageError: Something is remembered of a user or a thread, and the case has none.
    """
    store = memory_store()
    now = time.time()
    memories = [
        Memory(_owner(case, project, scope), "", text, now, now)
        for scope, texts in case.remembered.items()
        for text in texts
    ]

    async def remember() -> None:
        for each in memories:
            await store.memories.remember(each, len(memories))

    run_blocking(remember)
    return store


def _owner(case: Case, project: Project, scope: MemoryScope) -> MemoryOwner:
    missing = {"user": case.user is None, "thread": case.thread is None}
    if missing.get(scope):
        raise UsageError(
            f"the test says what is remembered of a {scope}, and has no `{scope}`",
            hint=f"Add `{scope}` to the test, or to `defaults`.",
            file=str(case.file),
            line=case.line,
        )
    match scope:
        case "thread":
            return MemoryOwner(scope, user=case.user or "", thread=case.thread or "")
        case "user":
            return MemoryOwner(scope, user=case.user or "")
        case "project":
            return MemoryOwner(scope, project=shared_name(project))

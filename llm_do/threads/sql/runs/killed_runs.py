"""`KilledRuns`: finishes the runs of processes that are gone; what becomes of each is in `recovery`."""

from __future__ import annotations

from llm_do.threads.sql.database import Database
from llm_do.threads.sql.open_store import OpenStore
from llm_do.threads.sql.runs import run_rows

__all__ = ["KilledRuns"]


class KilledRuns:
    """The runs of one store whose process is gone.

    Args:
        opened: What this process has of the store.
    """

    def __init__(self, opened: OpenStore) -> None:
        self._opened = opened
        self._owners = opened.owners
        self._active = opened.active

    def finish(self, db: Database) -> list[str]:
        """Finish every run whose process is gone, and return their ids."""
        return self.finish_of(db, None, None)

    def finish_of(self, db: Database, user: str | None, thread_id: str | None) -> list[str]:
        """Finish those on one thread, or all, and return their ids."""
        finished: list[str] = []
        alive: dict[str, bool] = {}
        for run in run_rows.open_runs(db, user, thread_id):
            active = self._active.get(run.id)
            if active is not None and run.owner in (active.owner, self._owners.own):
                continue
            if run.owner == self._owners.own and self._opened.has_claimed(run):
                continue
            if run.owner not in alive:
                alive[run.owner] = run.owner != self._owners.own and self._owners.alive(db, run.owner)
            if not alive[run.owner]:
                from llm_do.threads.sql.runs import recovery  # heavy

                recovery.finish_killed(db, run)
                finished.append(run.id)
        return finished

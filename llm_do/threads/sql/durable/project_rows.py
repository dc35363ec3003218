"""The files of projects that durable runs began with, each version once, as long as a run can still be resumed with it.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import time

from llm_do.runtime.record.store.store_writes import ProjectRow
from llm_do.threads.sql.database import Database

__all__ = ["add_project", "drop_unused_projects", "project_files"]


def add_project(db: Database, run_id: str, project: ProjectRow) -> None:
    """Keep the files that a run begins with, and drop those that no run needs any more."""
    db.execute("UPDATE runs SET project = ? WHERE id = ?", (project.digest, run_id))
    if db.execute("SELECT 1 FROM projects WHERE digest = ?", (project.digest,)).fetchone() is None:
        drop_unused_projects(db)
        db.execute(
            "INSERT INTO projects (digest, files, added) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING",
            (project.digest, project.files, time.time()),
        )


def drop_unused_projects(db: Database) -> None:
    """Drop the files of projects whose runs have all ended, or were deleted."""
    # Two conditions as those of indexes, so that the runs that have ended aren't looked at.
    unfinished = " UNION ".join(
        f"SELECT project FROM runs WHERE {status} AND project IS NOT NULL AND attempt > 0 AND result IS NULL"
        for status in ("status IN ('running', 'stopped', 'suspended')", "status = 'queued'")
    )
    db.execute(f"DELETE FROM projects WHERE digest NOT IN ({unfinished})")


def project_files(db: Database, run_id: str) -> ProjectRow | None:
    """The files that a run began with; None if they weren't kept."""
    row = db.execute(
        "SELECT projects.digest, projects.files FROM runs JOIN projects ON projects.digest = runs.project"
        " WHERE runs.id = ?",
        (run_id,),
    ).fetchone()
    return None if row is None else ProjectRow(row[0], bytes(row[1]))

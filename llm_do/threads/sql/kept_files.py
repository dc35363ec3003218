"""The files that are kept to undo runs (`files.changes`), dropped with the records of these runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from llm_do.errors import StoreError

__all__ = ["drop_kept_files"]


def drop_kept_files(roots: Iterable[Path], runs: Collection[str], what: str) -> None:
    """Drop what is kept of runs that were deleted.

    Args:
        roots: The folders of the projects whose runs they may be.
        runs: Ids of the runs.
        what: What has been done and what hasn't, for the error.

    Raises:
        StoreError: It can't be dropped in one of the folders.
    """
    from llm_do.files.changes.kept_folder import MOST_DAYS, KeptFolder

    faults: list[tuple[Path, OSError]] = []
    for root in roots:
        kept = KeptFolder(root)
        try:
            kept.drop_runs(runs)
        except OSError as error:
            faults.append((kept.path, error))
    if faults:
        folder, error = faults[0]
        raise StoreError(
            f"{what}: {folder} can't be changed: {error.strerror or error}",
            hint=f"Delete that folder; otherwise it is kept for up to {MOST_DAYS} days.",
        ) from error

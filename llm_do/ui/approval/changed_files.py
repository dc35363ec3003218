"""The files that a run changed, and which of them can be restored: for `llm-do runs show`, and the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.undo_plan import PlannedFile, UndoPlan, plan_undo
from llm_do.ui.approval.undo_report import file_data

__all__ = ["changed_files", "changed_rows"]

_OBSTACLES = {"undo": "", "done": "as before the run", "left": "it holds other files"}
"""What is said of a file, unless it is why it can't be restored."""


def find_changes(root: Path, run_id: str) -> UndoPlan | None:
    """What undoing a run would do.

    Args:
        root: The project's folder.
        run_id: The run's complete id.

    Returns:
        The plan; None if the run has changed no file, or nothing is kept.
    """
    record = KeptFolder(root).record(run_id)
    if record is None:
        return None
    files = {key: file for key, file in record.files.items() if not file.is_as_before}
    return plan_undo(root, record, files, trusted=True) if files else None


def changed_files(root: Path, run_id: str) -> list[dict[str, Any]]:
    """The files that a run changed, as JSON data."""
    plan = find_changes(root, run_id)
    return file_data(plan) if plan is not None else []


def changed_rows(root: Path, run_id: str) -> list[dict[str, Any]]:
    """The files that a run changed as people read of them: what it did to each, and why one can't be restored."""
    plan = find_changes(root, run_id)
    if plan is None:
        return []
    return [
        {
            "path": file.label,
            "change": file.change,
            "can_undo": file.outcome == "undo",
            "as_before": file.outcome == "done",
            "note": obstacle(file),
        }
        for file in plan.files
    ]


def obstacle(file: PlannedFile) -> str:
    """Why a file can't be restored; empty if it can."""
    return _OBSTACLES.get(file.outcome, file.why)

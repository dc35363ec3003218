"""The files that a run changed, and which of them can be restored, for `llm-do runs show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llm_do.cli.actions.project_store import align_columns
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.undo_plan import UndoPlan, plan_undo
from llm_do.text.run_ids import short_run_id
from llm_do.ui.approval.undo_report import file_data

__all__ = ["changed_files", "changed_lines"]

_FATES = {"undo": "", "done": "as before the run", "left": "it holds other files"}
"""What is said of a file, unless it is why it can't be restored."""


def changed_files(root: Path, run_id: str) -> list[dict[str, Any]]:
    """The files that a run changed, as JSON data."""
    plan = _plan(root, run_id)
    return file_data(plan) if plan is not None else []


def changed_lines(root: Path, run_id: str) -> list[str]:
    """The files that a run changed, and which of them can be restored."""
    plan = _plan(root, run_id)
    if plan is None:
        return []
    undoable = len(plan.those("undo"))
    which = "none can" if not undoable else "all can" if undoable == len(plan.files) else f"{undoable} can"
    how = f" by `llm-do undo {short_run_id(run_id)}`" if undoable else ""
    rows = [[file.change, file.label, f"({_FATES.get(file.outcome, file.why)})"] for file in plan.files]
    rows = [row if row[2] != "()" else row[:2] for row in rows]
    return [f"files changed, of which {which} be restored{how}:", *(f"  {line}" for line in align_columns(rows))]


def _plan(root: Path, run_id: str) -> UndoPlan | None:
    """What undoing a run would do; None if it has changed no file, or nothing is kept."""
    record = KeptFolder(root).record(run_id)
    if record is None:
        return None
    files = {key: file for key, file in record.files.items() if not file.is_as_before}
    return plan_undo(root, record, files, trusted=True) if files else None

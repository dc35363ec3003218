"""The files that a run changed, and which of them can be restored, as lines of `llm-do runs show`."""

from __future__ import annotations

from pathlib import Path

from llm_do.cli.actions.project_store import align_columns
from llm_do.text.run_ids import short_run_id
from llm_do.ui.approval.changed_files import changed_rows

__all__ = ["changed_lines"]


def changed_lines(root: Path, run_id: str) -> list[str]:
    """The files that a run changed, and which of them can be restored."""
    found = changed_rows(root, run_id)
    if not found:
        return []
    undoable = sum(each["can_undo"] for each in found)
    which = "none can" if not undoable else "all can" if undoable == len(found) else f"{undoable} can"
    how = f" by `llm-do undo {short_run_id(run_id)}`" if undoable else ""
    rows = [[each["change"], each["path"], *([f"({each['note']})"] if each["note"] else [])] for each in found]
    return [f"files changed, of which {which} be restored{how}:", *(f"  {line}" for line in align_columns(rows))]

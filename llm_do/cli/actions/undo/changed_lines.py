"""The files that a run changed, and which of them can be restored, as lines of `llm-do runs show`."""

from __future__ import annotations

from pathlib import Path

from llm_do.cli.actions.project_store import align_columns
from llm_do.text.generated_ids import short_run_id
from llm_do.ui.approval.changed_files import changed_rows

__all__ = ["changed_lines"]


def changed_lines(root: Path, run_id: str) -> list[str]:
    """The files that a run changed, and which of them can be restored."""
    found = changed_rows(root, run_id)
    if not found:
        return []
    which = _which(len(found), sum(each["can_undo"] for each in found), sum(each["as_before"] for each in found))
    how = f" by `llm-do undo {short_run_id(run_id)}`" if any(each["can_undo"] for each in found) else ""
    rows = [[each["change"], each["path"], *([f"({each['note']})"] if each["note"] else [])] for each in found]
    return [f"files changed, of which {which}{how}:", *(f"  {line}" for line in align_columns(rows))]


def _which(count: int, undoable: int, as_before: int) -> str:
    """How many of the files can be restored; one that is as before the run needs no restoring.

    Example:
        >>> _which(3, 2, 1), _which(1, 0, 1)
        ('1 is as before the run and the others can be restored', 'all are as before the run')
    """
    if as_before == count:
        return "all are as before the run"
    if not as_before:
        which = "none" if not undoable else "all" if undoable == count else f"{undoable}"
        return f"{which} can be restored"
    rest = count - as_before
    which = "none of the others" if not undoable else "the others" if undoable == rest else f"{undoable}"
    return f"{as_before} {'is' if as_before == 1 else 'are'} as before the run and {which} can be restored"

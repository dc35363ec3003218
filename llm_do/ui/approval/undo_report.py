"""What an undo would do, and what it has done, as lines and as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_do.files.changes.change_record import ChangeRecord, FileKey
from llm_do.files.changes.file_diff import unified_diff
from llm_do.files.changes.file_states import FileState
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import size_text
from llm_do.files.changes.undo_plan import PlannedFile, UndoPlan, root_of
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import refuse_links
from llm_do.text.generated_ids import short_run_id
from llm_do.text.words import with_count

__all__ = ["calls_lines", "file_data", "file_rows", "plan_title", "undo_diffs"]

_LARGEST = 1024 * 1024
"""Bytes of a file whose difference is shown."""

_MOST_CALLS = 10
"""Calls that are listed; of more, the first ones and a count."""


def plan_title(plan: UndoPlan) -> str:
    """What is undone, in a few words."""
    count = len(plan.those("undo"))
    files = with_count(count, "file")
    record = plan.record
    if record.of is None:
        return f"undo run {short_run_id(record.id)}: {files}"
    return f"undo {record.id}, which undid {short_run_id(record.of)}: {files}"


def undo_diffs(root: Path, plan: UndoPlan) -> list[tuple[PlannedFile, str]]:
    """What undoing changes in each file: a unified diff, or a few words where there are no two texts."""
    kept = KeptFolder(root)
    return [(file, _difference(root, kept, file)) for file in plan.those("undo")]


def file_rows(files: Sequence[PlannedFile]) -> list[list[str]]:
    """What becomes of files, one row each."""
    words = {"undo": "", "done": "as before", "left": "stays", "unkept": "not kept"}
    rows: list[list[str]] = []
    for file in files:
        row = [words.get(file.outcome, file.outcome) or file.act, file.label]
        rows.append([*row, f"({file.why})"] if file.why else row)
    return rows


def file_data(plan: UndoPlan, failed: dict[FileKey, str] | None = None, *, done: bool = False) -> list[dict[str, Any]]:
    """Each file as JSON data: its path, what the run did to it, what becomes of it, and why it isn't undone."""
    found: list[dict[str, Any]] = []
    for file in plan.files:
        why, outcome = file.why, str(file.outcome)
        if failed and file.key in failed:
            why, outcome = failed[file.key], "failed"
        elif done and outcome == "undo":
            outcome = "undone"
        found.append({"path": file.key.label, "change": file.change, "outcome": outcome, "why": why or None})
    return found


def calls_lines(record: ChangeRecord) -> list[str]:
    """The calls of a run whose effects aren't undone."""
    shown = list(record.calls.values())[:_MOST_CALLS]
    more = len(record.calls) - len(shown) + record.left_out
    lines = [f"not undone: {call}" for call in shown]
    return [*lines, f"not undone: {more:,} more calls"] if more else lines


def _difference(root: Path, kept: KeptFolder, file: PlannedFile) -> str:
    if "link" in (file.now.kind, file.before.kind):
        return f"{_words(file.now)} becomes {_words(file.before)}"
    if "folder" in (file.now.kind, file.before.kind):
        is_new_or_gone = "missing" in (file.now.kind, file.before.kind)
        return "" if is_new_or_gone else f"{_words(file.now)} becomes {_words(file.before)}"
    if file.now.digest == file.before.digest:
        return f"mode {file.now.mode or 0:o} becomes {file.before.mode or 0:o}"
    if max(file.now.size, file.before.size) > _LARGEST:
        return f"{_words(file.now)} becomes {_words(file.before)}"
    now, before = b"", b""
    if file.now.kind == "file":
        try:
            now = root_of(root, file.key).read(file.key.path, limit=_LARGEST, guard=refuse_links)
        except FileRefusedError:  # it is looked at once more before it is changed
            return ""
    if file.before.kind == "file":
        before = kept.content(file.before.digest) or b""
    try:
        if b"\0" in now + before:
            raise ValueError
        return unified_diff(now.decode(), before.decode(), file.key.label)
    except ValueError:
        return f"{_words(file.now)} becomes {_words(file.before)}"


def _words(state: FileState) -> str:
    match state.kind:
        case "missing":
            return "nothing"
        case "link":
            return f"a link to {state.target}"
        case "folder":
            return "a folder"
        case _:
            return f"a file of {size_text(state.size)}"

"""What an undo would do, file by file, and which run it would undo.

A file is restored only if it is as the run left it: what somebody has changed since is theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.files.changes.change_record import ChangedFile, ChangeRecord, FileKey
from llm_do.files.changes.file_states import MISSING, FileState
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import size_text
from llm_do.files.glob_patterns import matches_any_path
from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root

__all__ = ["Outcome", "PlannedFile", "UndoPlan", "left_to_undo", "plan_last", "plan_undo", "root_of", "selects"]

Outcome = Literal["undo", "done", "left", "changed", "unkept", "refused"]
"""What becomes of a file: it is undone; it is as before already; it is a new folder that holds other files, and stays;
it has changed since; its content isn't kept; it can't be reached, or may not be."""

TRUST = "it is outside of the project's folder, which isn't trusted"


@frozen
class PlannedFile:
    """What would become of one file.

    Args:
        key: Which file.
        outcome: What becomes of it.
        before: What was there before the run.
        now: What is there.
        why: Why it isn't undone; empty if it is.
        last: What the run's last change has put there.
    """

    key: FileKey
    outcome: Outcome
    before: FileState
    now: FileState
    why: str = ""
    last: FileState = MISSING

    @property
    def label(self) -> str:
        """Its path as people know it, with a slash after a folder's."""
        return f"{self.key.label}{'/' if 'folder' in (self.before.kind, self.last.kind) else ''}"

    @property
    def is_new(self) -> bool:
        """Whether the run created it."""
        return self.before.kind == "missing"

    @property
    def change(self) -> str:
        """What the run did to it: `created`, `changed` or `removed`."""
        if self.is_new:
            return "created"
        return "removed" if self.last.kind == "missing" else "changed"

    @property
    def act(self) -> str:
        """What undoing it does, as a verb: `restore`, `remove` or `create` again."""
        if self.is_new:
            return "remove"
        return "create" if self.now.kind == "missing" else "restore"


@frozen
class UndoPlan:
    """What an undo would do.

    Args:
        record: What the run has changed.
        files: Each of these files that is selected, in order.
    """

    record: ChangeRecord
    files: Sequence[PlannedFile]

    def those(self, *outcomes: Outcome) -> list[PlannedFile]:
        """The files with one of these outcomes."""
        return [file for file in self.files if file.outcome in outcomes]


def left_to_undo(records: Sequence[ChangeRecord]) -> dict[str, Mapping[FileKey, ChangedFile]]:
    """Return, by a record's id, which of its files are left: no undo has undone them that isn't undone itself.

    Example:
        >>> a, b = FileKey("a"), FileKey("b")
        >>> changed = lambda *keys: {key: ChangedFile(MISSING) for key in keys}
        >>> run, undo = ChangeRecord("run", files=changed(a, b)), ChangeRecord("undo", of="run", files=changed(a))
        >>> [list(files) for files in left_to_undo([run, undo]).values()] == [[b], [a]]
        True
    """
    undos: dict[str, list[ChangeRecord]] = {}
    for record in records:
        if record.of is not None:
            undos.setdefault(record.of, []).append(record)
    left: dict[str, Mapping[FileKey, ChangedFile]] = {}
    todo, begun = list(records), set[str]()
    while todo:  # undos of undos may form long chains
        record = todo[-1]
        # Records that came with a folder may name each other.
        waiting = [undo for undo in undos.get(record.id, ()) if undo.id not in begun]
        begun.add(record.id)
        if waiting:
            todo += waiting
            continue
        todo.pop()
        undone = [left.get(undo.id, {}) for undo in undos.get(record.id, ())]
        left[record.id] = {
            key: file
            for key, file in record.files.items()
            # A run that goes on after it was undone may change a file again.
            if not file.is_as_before
            and not any(key in files and files[key].changed >= file.changed for files in undone)
        }
    return {record.id: left[record.id] for record in records}


def plan_last(
    root: Path, records: Sequence[ChangeRecord], globs: Sequence[str] = (), *, trusted: bool
) -> UndoPlan | None:
    """Plan the undo of the last run that has changed files, of which anything is left to undo; None if there is none.

    Args:
        root: The project's folder.
        records: All records, the latest last.
        globs: As for `plan_undo`.
        trusted: As for `plan_undo`.
    """
    left = left_to_undo(records)
    begun = {record.of for record in records}
    for record in reversed(records):
        if record.of is None and left[record.id]:
            plan = plan_undo(root, record, left[record.id], globs, trusted=trusted)
            if plan.those("undo", "changed", "refused") or (plan.those("unkept") and record.id not in begun):
                return plan
    return None


def plan_undo(
    root: Path, record: ChangeRecord, files: Mapping[FileKey, ChangedFile], globs: Sequence[str] = (), *, trusted: bool
) -> UndoPlan:
    """Find out what an undo would do; nothing changes.

    Args:
        root: The project's folder.
        record: What the run has changed.
        files: Which of it to undo.
        globs: Only files that one of these matches, if there are any; `!GLOB` leaves files out.
        trusted: Whether files outside of the project's folder may be restored, and those in `.git`.
    """
    kept = KeptFolder(root)
    found = [
        _planned(root, kept, key, file, trusted=trusted)
        for key, file in sorted(files.items(), key=lambda item: item[0].label)
        if selects(globs, key)
    ]
    return UndoPlan(record, _with_room(root, found))


def selects(globs: Sequence[str], key: FileKey) -> bool:
    """Whether globs select a file.

    Example:
        >>> [selects(globs, FileKey("docs/a.md")) for globs in ((), ("*.md",), ("docs/**", "!a.md"), ("src/**",))]
        [True, True, False, False]
    """
    path = key.label.lstrip("/")
    wanted = [glob.removeprefix("./") for glob in globs if not glob.startswith("!")]
    unwanted = [glob[1:].removeprefix("./") for glob in globs if glob.startswith("!")]
    return (not wanted or matches_any_path(path, wanted)) and not matches_any_path(path, unwanted)


def root_of(root: Path, key: FileKey) -> Root:
    """Return the root that a file is reached through.

    Raises:
        FileRefusedError: It isn't the folder any more that it was.
    """
    if key.root is None:
        return Root(root)
    if os.path.realpath(key.root) != key.root:
        raise FileRefusedError(key.root, "a part of it has become a link", reason="changed")
    return Root(key.root)


def _planned(root: Path, kept: KeptFolder, key: FileKey, file: ChangedFile, *, trusted: bool) -> PlannedFile:
    before, last = file.before, file.after[-1] if file.after else MISSING
    if not trusted and (key.root is not None or ".git" in map(fold_name, key.path.split("/"))):
        why = TRUST if key.root is not None else "it is in .git, and the project's folder isn't trusted"
        return PlannedFile(key, "refused", before, MISSING, why, last)
    try:
        now = root_of(root, key).state(key.path)
    except FileRefusedError as error:
        return PlannedFile(key, "refused", before, MISSING, error.why, last)
    outcome, why = _outcome(kept, file, now)
    return PlannedFile(key, outcome, before, now, why, last)


def _outcome(kept: KeptFolder, file: ChangedFile, now: FileState) -> tuple[Outcome, str]:
    before = file.before
    if now.matches(before):
        return "done", ""
    if now.kind == "missing" and before.kind == "missing":
        return "done", ""
    if file.unkept:
        return "unkept", file.unkept
    if now.kind == "file" and not now.digest:
        return "unkept", f"what is there now is too large to be kept, with {size_text(now.size)}"
    if not any(now.matches(after) for after in file.after):
        return "changed", _change_since(file, now)
    if before.kind == "file" and not kept.has(before.digest):
        return "unkept", "its content has been dropped since"
    return "undo", ""


def _change_since(file: ChangedFile, now: FileState) -> str:
    last = file.after[-1] if file.after else MISSING
    if now.kind == "missing":
        return "it has been removed since"
    if last.kind == "missing":
        return "it has been created since"
    if now.kind == last.kind == "file" and now.digest == last.digest:
        return "its mode has changed since"
    return "it has changed since"


def _with_room(root: Path, found: Sequence[PlannedFile]) -> list[PlannedFile]:
    """Look which folders hold anything that isn't undone with them, from the inside out: such a folder stays."""
    gone = {file.key for file in found if file.outcome == "undo" and file.now.kind != "folder" and file.is_new}
    planned: list[PlannedFile] = []
    for file in sorted(found, key=lambda each: each.key.path.count("/"), reverse=True):
        if file.outcome == "undo" and file.now.kind == "folder" and file.before.kind != "folder":
            try:
                names = [entry.name for entry in root_of(root, file.key).list(file.key.path)]
            except FileRefusedError as error:
                file = replace(file, outcome="refused", why=error.why)
            else:
                if all(FileKey(f"{file.key.path}/{name}", file.key.root) in gone for name in names):
                    gone.add(file.key)
                else:
                    outcome: Outcome = "left" if file.is_new else "changed"
                    file = replace(file, outcome=outcome, why="it holds other files")
        planned.append(file)
    return sorted(planned, key=lambda each: each.key.label)

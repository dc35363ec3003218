"""Undoes what a run has changed, as planned. What that replaces is kept in turn, so that it can be undone as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.files.changes.change_record import FileKey
from llm_do.files.changes.file_states import MISSING, FileState
from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.changes.undo_plan import PlannedFile, UndoPlan, root_of
from llm_do.files.refusals import FileRefusedError

__all__ = ["Undone", "undo"]


@frozen
class Undone:
    """What an undo has done.

    Args:
        id: The undo's id, by which it can be undone.
        files: The files that are as before the run now.
        failed: Why others aren't.
    """

    id: str
    files: Sequence[FileKey]
    failed: dict[FileKey, str]


def undo(root: Path, plan: UndoPlan, id: str) -> Undone:
    """Undo what is planned; each file is looked at once more just before it is changed.

    Args:
        root: The project's folder.
        plan: What to undo.
        id: The undo's id.
    """
    work = _Undo(root, KeptFolder(root))
    with kept_by(RunKeeper(root, id, of=plan.record.id, strict=True)):
        work.carry_out(plan.those("undo"))
    done = [file.key for file in plan.those("undo") if file.key not in work.failed]
    return Undone(id, done, work.failed)


class _Undo:
    def __init__(self, root: Path, kept: KeptFolder) -> None:
        self._root = root
        self._kept = kept
        self.failed: dict[FileKey, str] = {}

    def carry_out(self, files: Sequence[PlannedFile]) -> None:
        """Make room first, from the inside out, then restore, from the outside in."""
        inwards = sorted(files, key=lambda file: (file.key.path.count("/"), file.key.label))
        for file in reversed(inwards):
            gives_way = file.now.kind == "link" or file.now.kind != file.before.kind
            if gives_way and file.now.kind not in ("missing", "folder"):
                self._try(file, lambda file=file: self._put(file.key, MISSING, expected=file.now))
        for file in reversed(inwards):
            if file.now.kind == "folder" and file.before.kind != "folder":
                self._try(file, lambda file=file: self._put(file.key, MISSING, expected=file.now))
        for file in inwards:
            if file.before.kind != "missing":
                self._try(file, lambda file=file: self._restore(file))

    def _try(self, file: PlannedFile, act: Callable[[], None]) -> None:
        if file.key in self.failed:
            return
        try:
            act()
        except FileRefusedError as error:
            self.failed[file.key] = "it has changed just now" if error.reason == "changed" else error.why

    def _restore(self, file: PlannedFile) -> None:
        before = file.before
        data = self._kept.content(before.digest) if before.kind == "file" else b""
        if data is None:
            raise FileRefusedError(file.key.label, "its content has been dropped since", reason="failed")
        replaced = file.now.kind == before.kind == "file"
        self._put(file.key, before, data, expected=file.now if replaced else MISSING)

    def _put(self, key: FileKey, state: FileState, data: bytes = b"", *, expected: FileState) -> None:
        root_of(self._root, key).put(key.path, state, data, expected=expected)

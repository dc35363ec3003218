"""A project whose file tools change files, and what can be undone of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.changes.undo_plan import UndoPlan, left_to_undo, plan_undo
from llm_do.files.changes.undoing import Undone, undo
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.filesystem.protection import Protection


def tools_of(root: Path) -> FileTools:
    return FileTools(Protection(Root(root)))


def tree(root: Path) -> dict[str, tuple[str, int]]:
    """Everything below a folder but llm-do's own: contents, links, modes."""
    found: dict[str, tuple[str, int]] = {}
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name != ".llm-do"]
        for name in [*below, *files]:
            path = Path(folder, name)
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                found[str(path.relative_to(root))] = (f"-> {path.readlink()}", 0)
            else:
                text = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(root))] = (text, mode)
    return found


def plan_of(root: Path, id: str, *globs: str, trusted: bool = True) -> UndoPlan:
    records = KeptFolder(root).records()
    [record] = [record for record in records if record.id == id]
    return plan_undo(root, record, left_to_undo(records)[id], globs, trusted=trusted)


def undone(root: Path, id: str, by: str, *globs: str) -> Undone:
    plan = plan_of(root, id, *globs)
    assert not plan.those("changed", "refused", "unkept")
    return undo(root, plan, by)


def outcomes(plan: UndoPlan) -> dict[str, str]:
    return {file.key.label: file.outcome for file in plan.files}


def changed_by(root: Path, act: Callable[[FileTools], object], id: str = "run", **options: Any) -> None:
    with kept_by(RunKeeper(root, id, **options)):
        act(tools_of(root))

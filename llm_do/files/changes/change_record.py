"""`ChangeRecord`: what one run, or one undo, has changed, read from the lines that were written during it.

    {"run": ID, "of": null, "time": ...}    the first line; `of` is what an undo undid
    {"n": 1, "path": "a.md", "root": null, "before": ..., "after": ..., "time": ...}    before each change
    {"done": 1, "after": ...}      or      {"failed": 1}              after it, unless the process was killed
    {"call": "shell(...)", "id": ..., "time": ...}                    a call whose effects can't be undone

A folder may come from somebody else, and so may its records: lines that can't be ours are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.files.changes.file_states import FileState
from llm_do.files.local_folder import FOLDER
from llm_do.files.paths import fold_name

__all__ = ["ChangeRecord", "ChangedFile", "FileKey", "json_line", "read_record"]

_MOST_CALLS = 200


@frozen
class FileKey:
    """Which file: a path below the project's folder, or below another root.

    Args:
        path: The real path below the root, in POSIX form.
        root: The absolute real path of a root outside of the project's folder; None for the project's.
    """

    path: str
    root: str | None = None

    @property
    def label(self) -> str:
        """The path as people know it."""
        return self.path if self.root is None else f"{self.root.rstrip('/')}/{self.path}"

    @property
    def is_valid(self) -> bool:
        """Whether it can be a path that a tool was given."""
        names = self.path.split("/")
        if not self.path or "\0" in self.path or {"", ".", ".."}.intersection(names):
            return False
        if self.root is not None and not (self.root.startswith("/") or self.root[1:3] in (":/", ":\\")):
            return False
        return FOLDER not in map(fold_name, [*names, *PurePosixPath(self.root or "").parts])


@dataclass(slots=True)
class ChangedFile:
    """One file that was changed.

    Args:
        before: What was there before the first change.
        unkept: Why its content isn't kept; empty if it is.
        after: What may be there now: what the last change that is known to be made has put there, or one after it.
        changed: When it was changed last, in seconds since the epoch.
    """

    before: FileState
    unkept: str = ""
    after: list[FileState] = field(default_factory=list[FileState])
    changed: float = 0.0

    @property
    def is_as_before(self) -> bool:
        """Whether what the run left there is what was there before."""
        return bool(self.after) and all(after.matches(self.before) for after in self.after)


@dataclass(slots=True)
class ChangeRecord:
    """What one run, or one undo, has changed.

    Args:
        id: The run's id, or the undo's.
        of: What an undo undid; None for a run.
        changed: When it changed a file last, in seconds since the epoch.
        files: The files.
        calls: Calls whose effects can't be undone, by their ids.
        left_out: How many more such calls there were.
        last: The number of its last change.
    """

    id: str
    of: str | None = None
    changed: float = 0.0
    files: dict[FileKey, ChangedFile] = field(default_factory=dict[FileKey, ChangedFile])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    left_out: int = 0
    last: int = 0


def json_line(data: Mapping[str, Any]) -> str:
    """Return data as a line; its text is ASCII, so that it can hold any file name."""
    return json.dumps(data, separators=(",", ":")) + "\n"


def read_record(data: bytes) -> ChangeRecord | None:
    """Read a record; None if it isn't one."""
    record: ChangeRecord | None = None
    open_changes: dict[int, FileKey] = {}
    for line in data.split(b"\n"):
        try:
            found: object = json.loads(line) if line else None
        except (ValueError, RecursionError):  # the process was killed while it wrote the line
            continue
        if not isinstance(found, dict):
            continue
        values = cast("dict[str, Any]", found)
        if record is None:
            record = _first(values)
            if record is None:
                return None
            continue
        try:
            _add(record, values, open_changes)
        except (ValueError, TypeError, LookupError, OverflowError):
            continue
    return record


def _first(values: dict[str, Any]) -> ChangeRecord | None:
    id, of = values.get("run"), values.get("of")
    if not isinstance(id, str) or not isinstance(of, str | None):
        return None
    return ChangeRecord(id, of)


def _add(record: ChangeRecord, values: dict[str, Any], open_changes: dict[int, FileKey]) -> None:
    if "n" in values:
        key = FileKey(str(values["path"]), None if values["root"] is None else str(values["root"]))
        number, after, moment = int(values["n"]), FileState.from_dict(values["after"]), float(values["time"])
        if not math.isfinite(moment):
            raise ValueError("no moment")
        record.last = max(record.last, number)
        if not key.is_valid:
            return
        if key not in record.files:
            record.files[key] = ChangedFile(FileState.from_dict(values["before"]), str(values.get("unkept", "")))
        record.files[key].after.append(after)
        open_changes[number] = key
        record.files[key].changed = moment
        record.changed = max(record.changed, moment)
    elif "done" in values:
        key = open_changes.pop(int(values["done"]), None)
        if key is not None:
            record.files[key].after = [FileState.from_dict(values["after"])]
    elif "failed" in values:
        key = open_changes.pop(int(values["failed"]), None)
        if key is not None:
            record.files[key].after.pop()
            if not record.files[key].after:
                del record.files[key]
    elif isinstance(values.get("call"), str):
        if len(record.calls) < _MOST_CALLS:
            record.calls.setdefault(str(values["id"]), values["call"])
        else:
            record.left_out += 1

"""Unreviewed files: new code that a model's tool made, which isn't loaded before a person has agreed to it.

The list is `.llm-do/unreviewed.json`. While tools run, a `.llm-do/watch-*.json` keeps what was there before them, so
that a process that is killed hides nothing: whoever looks next compares for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import cast

from llm_do._machine_limits import hint_for
from llm_do.errors import StoreError
from llm_do.files.code_files import CodeFiles
from llm_do.files.code_tree import CodeScan, CodeTree, Identity
from llm_do.files.local_folder import FOLDER, NOT_LINKED, is_linked, make_folder
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root

__all__ = [
    "FILE",
    "OpenWatch",
    "agree",
    "describe_makers",
    "is_below",
    "is_new",
    "is_unreviewed",
    "new_code",
    "open_watch",
    "record",
    "unreviewed_files",
]

FILE = f"{FOLDER}/unreviewed.json"
"""The list, below the project's root."""

_WATCH = "watch-"
_LIMIT = 64 * 1024 * 1024
_INTERRUPTED = "a command that was interrupted"
_CHANGED = ", which changed it"


class OpenWatch:
    """A file that keeps what was there while tools run; its lock tells others that this process is alive."""

    def __init__(self, path: Path | None, lock: int) -> None:
        self._path = path
        self._lock = lock

    def close(self) -> None:
        """End the watch, after what is new has been recorded."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._lock)


def open_watch(code: CodeFiles, scan: CodeScan) -> OpenWatch:
    """Keep what is there now; in a folder that can't be written nothing is kept."""
    data = {
        "manifest": str(code.manifest) if code.manifest is not None else None,
        "patterns": list(code.patterns),
        "data_folders": list(code.data_folders),
        "skills": list(code.skills),
        "programs": list(code.programs),
        "code": dict(scan.code),
    }
    try:
        path = make_folder(code.root) / f"{_WATCH}{secrets.token_hex(6)}.json"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return OpenWatch(None, -1)
    watch = OpenWatch(path, lock)
    if not _flock(lock):  # without locks, a process that has ended looks like one that runs
        watch.close()
        return OpenWatch(None, -1)
    with os.fdopen(os.dup(lock), "w", encoding="utf-8") as file:
        json.dump(data, file)
    return watch


def unreviewed_files(root: Path) -> Mapping[str, str]:
    """Return the unreviewed files and folders by their paths below the root, each with what made it."""
    folder = root / FOLDER
    if is_linked(root) or not folder.is_dir():
        return {}
    found = dict(_read(root))
    for path in sorted(folder.glob(f"{_WATCH}*.json")):
        found |= _left_by(root, path)
    return found


def record(root: Path, files: Mapping[str, str]) -> None:
    """Add files to the list."""
    if files:
        with _edit(root) as listed:
            listed |= files


def agree(root: Path, paths: Iterable[str]) -> None:
    """Take files off the list, so that they are loaded from now on."""
    for path in sorted((root / FOLDER).glob(f"{_WATCH}*.json")):
        record(root, _left_by(root, path))
    with _edit(root) as listed:
        for path in paths:
            listed.pop(path, None)


def describe_makers(before: Mapping[str, Identity], found: Iterable[str], maker: str) -> dict[str, str]:
    """Return what made each file, or changed one that was there before."""
    return {path: f"{maker}{_CHANGED}" if path in before else maker for path in found}


def is_new(maker: str) -> bool:
    """Whether what is listed was made, not only changed; only that may be changed again without a question.

    Example:
        >>> is_new("shell: make"), is_new("shell: make, which changed it")
        (True, False)
    """
    return not maker.endswith(_CHANGED)


def is_below(path: str, listed: Iterable[str]) -> bool:
    """Whether a path, or a folder that it is in, is listed.

    Example:
        >>> is_below("lib/a.py", ["lib"]), is_below("library/a.py", ["lib"])
        (True, False)
    """
    return any(path == each or path.startswith(f"{each}/") for each in listed)


def is_unreviewed(root: Path, path: str) -> bool:
    """Whether no one has agreed to a path below the root."""
    return is_below(path, unreviewed_files(root))


def new_code(before: Mapping[str, Identity], after: CodeScan) -> list[str]:
    """Return the code that is new or has changed."""
    return sorted(path for path, identity in after.code.items() if before.get(path) != identity)


def _left_by(root: Path, path: Path) -> Mapping[str, str]:
    """Return what is new since a watch began; one whose process has ended is recorded and removed."""
    try:
        lock = os.open(path, os.O_RDWR)
    except OSError:
        return {}
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):  # reading a pipe would wait for its writer
            return {}
        ended = _flock(lock)
        with os.fdopen(os.dup(lock), "rb") as file:
            data = json.loads(file.read(_LIMIT))
        code = CodeFiles(
            root,
            Path(data["manifest"]) if data["manifest"] else None,
            patterns=data["patterns"],
            data_folders=data["data_folders"],
            skills=data.get("skills", ()),
            programs=data.get("programs", ()),
        )
        before = {name: tuple(identity) for name, identity in data["code"].items()}
        known = cast("Mapping[str, Identity]", before)
        found = describe_makers(known, new_code(known, CodeTree(code, lambda _: False).scan()), _INTERRUPTED)
        if ended:
            record(root, found)
            path.unlink(missing_ok=True)
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    finally:
        os.close(lock)


def _flock(lock: int) -> bool:
    """Lock a file for as long as it is open; False if another process has locked it."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _read(root: Path) -> Mapping[str, str]:
    if not os.path.lexists(root / FILE):
        return {}
    try:
        data: object = json.loads(Root(root).read(FILE, limit=_LIMIT))
        files: object = cast("dict[str, object]", data)["files"]
        return {str(path): str(maker) for path, maker in cast("dict[str, object]", files).items()}
    except (FileRefusedError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{FILE} can't be read", hint=f"Look at new code in the project, then delete {FILE}."
        ) from error


@contextlib.contextmanager
def _edit(root: Path) -> Generator[dict[str, str]]:
    """The list, written back at the end without files that are gone; one process at a time."""
    try:
        lock = os.open(make_folder(root) / "unreviewed.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        hint = NOT_LINKED if is_linked(root) else hint_for(error, None)
        raise StoreError(f"{FILE} can't be written: {error.strerror or error}", hint=hint) from error
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        listed = dict(_read(root))
        yield listed
        there = {path: maker for path, maker in sorted(listed.items()) if os.path.lexists(root / path)}
        text = json.dumps({"version": 1, "files": there}, indent=2, ensure_ascii=False)
        try:
            Root(root).write(FILE, text.encode())
        except (FileRefusedError, OSError) as error:
            raise StoreError(
                f"{FILE} can't be written: {error}", hint="see that `.llm-do` is a folder that you may write to"
            ) from error
    finally:
        os.close(lock)

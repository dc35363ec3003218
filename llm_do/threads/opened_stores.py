"""Finding a project's store: what the manifest names, in `.llm-do/state.db` below the project's root by default."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from llm_do.errors import StoreError, UsageError
from llm_do.files.local_folder import FOLDER, NOT_LINKED, is_linked, make_folder
from llm_do.threads.sqlite.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["memory_store", "open_store", "reason_unrecorded"]

_stores: WeakValueDictionary[tuple[int, str], SqliteStore] = WeakValueDictionary()
_lock = threading.Lock()


def open_store(project: Project | Path | str) -> SqliteStore:
    """The store of a project; all that ask for it in one process get the same.

    Args:
        project: A project, or its folder.

    Returns:
        The store; its file is made when it is first used.

    Raises:
        StoreError: The folder for it can't be made.
        UsageError: The project names a kind of store that doesn't exist.
    """
    root, kind = (Path(project), "sqlite") if isinstance(project, str | Path) else (project.root, project.threads.store)
    if kind == "memory":
        return _shared((os.getpid(), f"memory {root.resolve()}"), None)
    if kind != "sqlite":
        raise UsageError(f"threads can't be kept in {kind!r}", hint="`threads.store` is `sqlite` or `memory`.")
    fault = _linked(root.resolve())
    if fault is not None:
        raise fault
    try:
        folder = make_folder(root.resolve())
    except OSError as error:
        folder = root.resolve() / FOLDER
        raise StoreError(f"{folder} can't be made: {error.strerror or error}", hint=_HINT) from error
    return _shared((os.getpid(), str(folder / "state.db")), folder / "state.db")


def memory_store() -> SqliteStore:
    """A store that keeps everything in memory, as long as the object lives."""
    return SqliteStore(None)


def reason_unrecorded(project: Project) -> StoreError | None:
    """Why a project's runs aren't recorded (its folder can't be written, or is a link); None if they are."""
    if project.threads.store != "sqlite":
        return None
    root = project.root.resolve()
    return _linked(root) or (StoreError(f"{project.root} is read-only") if _is_read_only(root) else None)


def _linked(root: Path) -> StoreError | None:
    """What is wrong with a store that lies behind a link, the folder's or the file's own."""
    file = root / FOLDER / "state.db"
    link = file.parent if is_linked(root) else file
    if not os.path.islink(link):
        return None
    hint = NOT_LINKED if link is not file else "Put the file itself in its place."
    return StoreError(f"{link} is a link, and what a project keeps stays below its root", hint=hint)


def _is_read_only(root: Path) -> bool:
    folder = root / FOLDER
    file = folder / "state.db"
    try:
        if file.exists() and not os.access(file, os.W_OK):
            return True
        return not os.access(folder if folder.is_dir() else root, os.W_OK | os.X_OK)
    except PermissionError:
        # Not even its entries may be looked at.
        return True


_HINT = "Is the project's folder read-only?"


def _shared(key: tuple[int, str], path: Path | None) -> SqliteStore:
    with _lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = SqliteStore(path)
        return store

"""Opens the store that a project's manifest or a caller names: by default `.llm-do/state.db` under the project root."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from llm_do._machine_limits import hint_for
from llm_do._startup.option_names import option_name
from llm_do.errors import StoreError, UsageError
from llm_do.files.local_folder import FOLDER, NOT_LINKED, is_linked, make_folder
from llm_do.project.store_location import expand, is_database
from llm_do.threads.sqlite.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["has_store", "memory_store", "open_store", "reason_unrecorded"]

_stores: WeakValueDictionary[tuple[int, str], SqlStore] = WeakValueDictionary()
_lock = threading.Lock()


def open_store(
    project: Project | Path | str, store: str | Path | None = None, *, env_file: str | None = None
) -> SqlStore:
    """Open a project's store. Every caller in a process gets the same one.

    Args:
        project: A project, or its folder.
        store: Which store: `sqlite`, `memory`, the URL of a PostgreSQL database, or a SQLite file; None is the one that
            the project names, and for a folder its own file.
        env_file: A file with variables for the store's URL, if `project` is a folder; a `Project` has its own.

    Returns:
        The store; its file or its tables are created on first use.

    Raises:
        StoreError: The store's folder can't be created, or psycopg isn't installed.
        UsageError: It is no store, or a variable in its URL isn't set.
    """
    if isinstance(project, str | Path):
        root, kind, found = Path(project), "sqlite", (Path(project), env_file)
    else:
        root, kind = project.root, project.threads.store
        found = (root if project.files else None, project.env_file)
    kind = kind if store is None else store
    if kind == "memory":  # of its runs, nothing is kept to undo them
        return _shared((os.getpid(), f"memory {root.resolve()}"), None)
    opened = _opened(root, kind, found)
    opened.add_project(root)
    return opened


def _opened(root: Path, kind: str | Path, found: tuple[Path | None, str | None]) -> SqlStore:
    """The store of a project, in a file or a database; `found` says where there are variables for its URL."""
    if isinstance(kind, str) and is_database(kind):
        from llm_do.runtime.record.project_variables import project_variables

        return _database(expand(kind, project_variables(*found)))
    if kind != "sqlite":
        if "://" in str(kind) or not str(kind).strip():  # not shown: it may hold a password
            raise UsageError(
                "records can't be kept there: it is neither a file nor the URL of a PostgreSQL database",
                hint="A store is `sqlite`, `memory`, `postgresql://...` or a SQLite file.",
            )
        return _other_file(Path(kind))
    fault = _link_error(root.resolve())
    if fault is not None:
        raise fault
    try:
        folder = make_folder(root.resolve())
    except OSError as error:
        folder = root.resolve() / FOLDER
        if (folder / "state.db").exists():  # it can be read
            return _shared((os.getpid(), str(folder / "state.db")), folder / "state.db")
        raise StoreError(
            f"{folder} can't be created: {error.strerror or error}", hint=hint_for(error, _HINT)
        ) from error
    return _shared((os.getpid(), str(folder / "state.db")), folder / "state.db")


def _database(url: str) -> SqlStore:
    from llm_do.threads.postgres.postgres_store import PostgresStore

    key = (os.getpid(), url)
    with _lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = PostgresStore(url)
        return store


def _other_file(path: Path) -> SqlStore:
    """The store in a file that isn't the project's own."""
    if path.is_dir() or not path.parent.is_dir():
        fault = "is a folder" if path.is_dir() else f"can't be created: there is no folder {path.parent}"
        raise StoreError(f"{path} {fault}", hint="Name a file in a folder that exists.")
    return _shared((os.getpid(), str(path.resolve())), path)


def memory_store() -> SqliteStore:
    """Create a store that keeps everything in memory and lives as long as the object."""
    return SqliteStore(None)


def has_store(root: Path) -> bool:
    """Whether a folder has a store of its own, which can be read; one behind a link isn't used."""
    return _link_error(root.resolve()) is None and os.access(root / FOLDER / "state.db", os.R_OK)


def reason_unrecorded(project: Project) -> StoreError | None:
    """Explain why a project's runs can't be recorded (its folder is read-only or a link); None if they can."""
    if project.threads.store != "sqlite":
        return None
    root = project.root.resolve()
    return _link_error(root) or (
        StoreError(
            f"{project.root} is read-only",
            hint="run it in a folder that you may write to, or without a record (`"
            f"{option_name('--no-record', 'record=False')}`)",
        )
        if _is_read_only(root)
        else None
    )


def _link_error(root: Path) -> StoreError | None:
    """Return an error if the store's folder or file is a symbolic link."""
    file = root / FOLDER / "state.db"
    link = file.parent if is_linked(root) else file
    if not os.path.islink(link):
        return None
    hint = NOT_LINKED if link is not file else "Replace the link with the file itself."
    return StoreError(f"{link} is a link, and a project's data must stay under its root", hint=hint)


def _is_read_only(root: Path) -> bool:
    folder = root / FOLDER
    file = folder / "state.db"
    try:
        if file.exists() and not os.access(file, os.W_OK):
            return True
        return not os.access(folder if folder.is_dir() else root, os.W_OK | os.X_OK)
    except PermissionError:
        # The folder can't even be listed.
        return True


_HINT = "Is the project's folder read-only?"


def _shared(key: tuple[int, str], path: Path | None) -> SqlStore:
    with _lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = SqliteStore(path)
        return store

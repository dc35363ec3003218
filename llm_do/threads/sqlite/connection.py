"""Connections to the store's file: durable commits, one connection a process, readable errors."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from llm_do._machine_limits import hint_for
from llm_do._startup.option_names import option_name
from llm_do.errors import LlmDoError, StoreError, UsageError
from llm_do.threads.sql.migrations import MIGRATIONS, migrate
from llm_do.threads.sql.store_errors import ReadOnlyStoreError, no_locks_error
from llm_do.threads.sqlite.queue_files import has_no_locks
from llm_do.threads.sqlite.sqlite_database import SqliteDatabase
from llm_do.threads.sqlite.store_file import StoreFile, create_file, is_writable, refuse_if_lost
from llm_do.threads.sqlite.turns import Turns

__all__ = ["SqliteConnection", "connect", "translate_sqlite_errors"]

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that a transaction waits for another process to finish its own."""


class SqliteConnection:
    """An open connection.

    Args:
        db: SQLite's connection.
        name: The store's name in messages.
        file: The files it has open; None in memory and for a store that can only be read.
        turns: The queue of the processes that write to it.
    """

    place = "folder"

    def __init__(
        self, db: SqliteDatabase, name: str, file: StoreFile | None = None, turns: Turns | None = None
    ) -> None:
        self.db = db
        self.name = name
        self._file = file
        self._turns = turns

    @property
    def is_intact(self) -> bool:
        """Whether it still writes to the store's file."""
        return self._file is None or self._file.is_intact

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.db.in_transaction

    def check(self) -> None:
        """Raise `StoreError` if it no longer writes to the store's file."""
        if self._file is not None:
            self._file.check()

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise SQLite's errors as `StoreError`s."""
        return translate_sqlite_errors(self.name)

    def carry_out(self, transaction: Callable[[], T], *, writes: bool) -> T:
        """Call a function that is one transaction, after waiting for this process's turn if it writes."""
        if not writes:
            if self._turns is not None:
                self._require_locks(self._turns.fault_now())
            return transaction()
        self.check()
        with self._turns.turn() if self._turns is not None else nullcontext():
            if self._turns is not None:
                self._require_locks(self._turns.fault)
            return transaction()

    def _require_locks(self, fault: OSError | None) -> None:
        """Refuse a store whose file locks fail: SQLite would wait for them, as if another process held them."""
        if has_no_locks(fault):
            raise no_locks_error(self.name) from fault

    def begin(self, *, writes: bool) -> None:
        """Begin a transaction; one that writes locks the store at once."""
        self.db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    def commit(self) -> None:
        """End a transaction; returns once it is on disk."""
        self.db.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo what the transaction has done; SQLite may have done so already."""
        with suppress(sqlite3.Error):
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    def version(self) -> int:
        """Return the store's schema version; 0 for an empty file."""
        return int(self.db.execute("PRAGMA user_version").fetchone()[0])

    def set_version(self, version: int) -> None:
        """Set the store's schema version."""
        self.db.execute(f"PRAGMA user_version = {version}")

    def close(self) -> None:
        """Close the connection, unless that could write what belongs to a deleted file into another one."""
        with suppress(sqlite3.Error, OSError):  # what is on disk is; nothing waits for an answer
            self._close()

    def _close(self) -> None:
        if self._turns is not None:
            self._turns.close()
        if self._file is None:
            self.db.close()
        elif self._file.is_intact:
            self.db.close()
            self._file.release()
        else:
            with suppress(StoreError):
                self._file.check()
            _keep_open(self.db)


def _keep_open(db: sqlite3.Connection) -> None:
    """Keep a connection open until the process is gone: closing it, also at exit, could copy its log into the file."""

    def wait(_: sqlite3.Connection) -> None:
        threading.Event().wait()

    threading.Thread(target=wait, args=(db,), name="llm-do-lost-store", daemon=True).start()


def connect(path: Path | None, name: str) -> SqliteConnection:
    """Open a store, migrate it to the latest schema, and make its commits durable."""
    if path is None:
        db = _opened(":memory:")
        with close_on_error(db):
            migrate(SqliteConnection(db, name), name)
        return SqliteConnection(db, name)
    refuse_if_lost(path)
    if path.exists() and not is_writable(path):
        return SqliteConnection(_read_only(path, name), name)
    turns = Turns(path.with_name(f"{path.name}-turn"))
    is_public = create_file(path)
    db = _opened(str(path))
    with close_on_error(db), turns.turn():
        if has_no_locks(turns.fault):
            raise no_locks_error(name)
        if is_public:
            path.chmod(0o600)
        _log_ahead(db)
        db.execute("PRAGMA synchronous = FULL")
        migrate(SqliteConnection(db, name), name)
        return SqliteConnection(db, name, StoreFile(path), turns)


def _opened(database: str, *, uri: bool = False) -> SqliteDatabase:
    db = sqlite3.connect(
        database, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=uri, factory=SqliteDatabase
    )
    db.create_function("floor", 1, math.floor, deterministic=True)  # not every SQLite is built with it
    return db


def _log_ahead(db: sqlite3.Connection) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:  # another process is creating the file
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _read_only(path: Path, name: str) -> SqliteDatabase:
    """Open a store that can only be read; an older one is migrated in a copy in memory."""
    # Without its log there is no writer, and SQLite couldn't create one to read the store in the usual way.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    db = _opened(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
    with close_on_error(db):
        if SqliteConnection(db, name).version() == len(MIGRATIONS):
            return db
        copy = _opened(":memory:")
        with close_on_error(copy):
            db.backup(copy)
            migrate(SqliteConnection(copy, name), name)
            copy.execute("PRAGMA query_only = ON")
    db.close()
    return copy


@contextmanager
def close_on_error(db: sqlite3.Connection) -> Generator[None]:
    """Close a connection that can't be used, and raise the error that says why."""
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            db.close()
        raise


@contextmanager
def translate_sqlite_errors(name: str) -> Generator[None]:
    """Raise SQLite's errors as `StoreError`s that explain them in one sentence."""
    try:
        yield
    except LlmDoError:
        raise
    except _TRANSLATED as error:
        raise _translate(error, name) from error


_TRANSLATED = (UnicodeError, OverflowError, OSError, sqlite3.Error)


def _translate(error: Exception, name: str) -> LlmDoError:
    """Explain an error of SQLite or the system in one sentence."""
    match error:
        case UnicodeEncodeError():
            text = f"{error.object[:60]!r} can't be stored: it contains a lone surrogate"
            return UsageError(text, hint="Use only valid Unicode text.")
        case UnicodeError():  # what SQLite says of a schema whose names aren't text
            return _explained(f"malformed text: {error}", "", name)
        case OverflowError():
            return StoreError(f"a number of more than 64 bits can't be stored in {name}", hint="Use a smaller one.")
        case PermissionError():
            return StoreError(f"{name} can't be written: {error.strerror}", hint="Is the folder read-only?")
        case OSError():
            return StoreError(f"{name} can't be opened: {error.strerror or error}", hint=hint_for(error, _FOLDER_HINT))
        case _:
            return _explained(str(error), getattr(error, "sqlite_errorname", ""), name)


_FOLDER_HINT = "see that its folder exists and that you may write to it"

_LOCK_FAULTS = {f"SQLITE_IOERR_{name}" for name in ("LOCK", "RDLOCK", "UNLOCK", "CHECKRESERVEDLOCK", "SHMLOCK")}
_DISK_FAULTS = {f"SQLITE_IOERR_{name}" for name in ("READ", "FSYNC", "DIR_FSYNC", "FSTAT", "CLOSE", "CORRUPTFS")}
"""How SQLite calls what a lack of space doesn't explain."""


_LONGEST_PATH = 504
"""Bytes of a path that SQLite opens on Unix: 512 with the ending of a journal."""

_FILES_OF_STORE = 5
"""The most files that SQLite has open for a store: the database, its log, the log's index, a journal, the folder."""


def _unopened(text: str, name: str) -> StoreError:
    """Explain why a file can't be opened, for which SQLite gives no reason: its folder often shows it."""
    opened: list[int] = []
    try:
        while len(opened) < _FILES_OF_STORE:
            opened.append(os.open(Path(name).parent, os.O_RDONLY))
    except OSError as error:
        return StoreError(f"{name} can't be opened: {error.strerror}", hint=hint_for(error, _FOLDER_HINT))
    finally:
        for number in opened:
            os.close(number)
    size = len(os.fsencode(Path(name).absolute()))
    if size > _LONGEST_PATH:
        return StoreError(
            f"{name} can't be opened: SQLite refuses a path as long as this, of {size} bytes",
            hint="move the project to a folder with a shorter path, or keep the record in another file with "
            f"{option_name('--store')}",
        )
    hint = "see that you may read and write the file, those beside it that begin with its name, and their folder"
    return StoreError(f"{name} can't be opened: {text}", hint=hint)


def _explained(text: str, code: str, name: str) -> StoreError:
    """Explain an error of SQLite by its text and by its code, which is empty for one of Python's module."""
    if code in _LOCK_FAULTS:
        return no_locks_error(name)
    if code in _DISK_FAULTS:
        hint = "Look at the system's log and at the disk; a network drive may be disconnected."
        return StoreError(f"{name} can't be read or written, the disk reports an error: {text}", hint=hint)
    if code.startswith("SQLITE_CANTOPEN"):
        return _unopened(text, name)
    if "not a database" in text or "malformed" in text:
        hint = "Move the file away to start a new one; `sqlite3 FILE .recover` may recover its content."
        return StoreError(f"{name} is damaged: {text}", hint=hint)
    if "full" in text or "disk I/O" in text:
        hint = "Free some space; everything saved before is still there."
        return StoreError(f"{name} can't be written, the disk may be full: {text}", hint=hint)
    if "readonly" in text:
        return ReadOnlyStoreError(
            f"{name} can't be written: it is read-only",
            hint="make the file and its folder writable, or run without a record (`"
            f"{option_name('--no-record', 'record=False')}`)",
        )
    if "locked" in text:
        waited = f"{name} has been locked by another process for more than {PATIENCE:g} s"
        return StoreError(waited, hint="Try again.")
    return StoreError(
        f"{name} can't be used: {text}",
        hint="see that no other program has the file open, and that it is llm-do's; moving it away starts a new one",
    )

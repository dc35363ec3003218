"""Connections to the store's file: durable commits, atomic transactions, readable errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from llm_do.errors import LlmDoError, StoreError, UsageError
from llm_do.threads.sqlite.migrations import migrate

__all__ = ["connect", "transaction", "translate_sqlite_errors"]

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that a transaction waits for another process to finish its own."""


def connect(path: Path | None, name: str) -> sqlite3.Connection:
    """Open the file, migrate it to the latest schema, and make commits durable."""
    if path is not None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(descriptor)
    db = sqlite3.connect(
        str(path) if path is not None else ":memory:", timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # another process is creating the file
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        db.execute("PRAGMA synchronous = FULL")
        migrate(db, name)
    except BaseException:
        db.close()
        raise
    return db


def transaction(db: sqlite3.Connection, begin: str, name: str, job: Callable[[sqlite3.Connection], T]) -> T:
    with translate_sqlite_errors(name):
        db.execute(begin)
        try:
            result = job(db)
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            raise
        return result


@contextmanager
def translate_sqlite_errors(name: str) -> Generator[None]:
    """Raise SQLite's errors as `StoreError`s that explain them in one sentence."""
    try:
        yield
    except LlmDoError:
        raise
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{error.object[:60]!r} can't be stored: it contains a lone surrogate", hint="Use only valid Unicode text."
        ) from error
    except PermissionError as error:
        raise StoreError(f"{name} can't be written: {error.strerror}", hint="Is the folder read-only?") from error
    except OSError as error:
        raise StoreError(f"{name} can't be opened: {error.strerror or error}") from error
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text or "malformed" in text:
            hint = "Move the file away to start a new one; `sqlite3 FILE .recover` may recover its content."
            raise StoreError(f"{name} is damaged: {text}", hint=hint) from error
        if "full" in text or "disk I/O" in text:
            hint = "Free some space; everything saved before is still there."
            raise StoreError(f"{name} can't be written, the disk may be full: {text}", hint=hint) from error
        if "readonly" in text:
            raise StoreError(f"{name} can't be written: it is read-only") from error
        if "locked" in text:
            raise StoreError(
                f"{name} has been locked by another process for more than {PATIENCE:g} s", hint="Try again."
            ) from error
        raise StoreError(f"{name} can't be used: {text}") from error

"""Transactions on a connection: reads that see one state of the store, and writes of several runs in one commit."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from llm_do.threads.sqlite.connection import StoreConnection, translate_sqlite_errors
from llm_do.threads.sqlite.migrations import roll_back_on_error

__all__ = ["Job", "Outcome", "commit", "read_all", "same_error", "write_all"]

Job: TypeAlias = Callable[[sqlite3.Connection], Any]
"""What happens inside a transaction. It may be run twice, so it changes nothing but the store."""


@dataclass(slots=True)
class Outcome:
    """What a job returned or raised."""

    value: Any = None
    error: BaseException | None = None


class _GroupError(Exception):
    """The transaction of several jobs failed as a whole."""


def commit(db: sqlite3.Connection) -> None:
    """End a transaction; returns once it is on disk."""
    db.execute("COMMIT")


def read_all(connection: StoreConnection, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs that only read, in one transaction."""
    db = connection.db
    with translate_sqlite_errors(connection.name):
        db.execute("BEGIN")
        with roll_back_on_error(db):
            outcomes = [_outcome_of(connection, job) for job in jobs]
            commit(db)
    connection.check()
    return outcomes


def write_all(connection: StoreConnection, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs in one transaction, each undone by itself if it fails.

    If the transaction fails as a whole, each job gets one of its own, and an error reaches only those it concerns.
    """
    if len(jobs) > 1:
        try:
            return _write_together(connection, jobs)
        except _GroupError:
            pass
    return [_write(connection, job) for job in jobs]


def _write(connection: StoreConnection, job: Job) -> Outcome:
    db = connection.db
    try:
        with translate_sqlite_errors(connection.name), connection.turn():
            db.execute("BEGIN IMMEDIATE")
            with roll_back_on_error(db):
                value = job(db)
                commit(db)
            connection.check()
            return Outcome(value)
    except BaseException as error:  # noqa: BLE001 (raised where the outcome is waited for)
        return Outcome(error=error)


def _write_together(connection: StoreConnection, jobs: Sequence[Job]) -> list[Outcome]:
    db = connection.db
    with translate_sqlite_errors(connection.name), connection.turn():
        db.execute("BEGIN IMMEDIATE")
        try:
            with roll_back_on_error(db):
                outcomes = [_within_savepoint(connection, job) for job in jobs]
                commit(db)
        except Exception as error:
            raise _GroupError from error
        connection.check()
        return outcomes


def _within_savepoint(connection: StoreConnection, job: Job) -> Outcome:
    db = connection.db
    db.execute("SAVEPOINT job")
    outcome = _outcome_of(connection, job)
    if outcome.error is not None:
        if not db.in_transaction:  # SQLite has rolled back everything, as it does when the disk is full
            raise _GroupError
        db.execute("ROLLBACK TO job")
    db.execute("RELEASE job")
    return outcome


def _outcome_of(connection: StoreConnection, job: Job) -> Outcome:
    try:
        with translate_sqlite_errors(connection.name):
            return Outcome(job(connection.db))
    except Exception as error:  # noqa: BLE001 (raised where the outcome is waited for)
        return Outcome(error=error)


def same_error(error: BaseException, count: int) -> list[Outcome]:
    """The outcomes of jobs that failed for one reason; each has an error of its own, because raising changes it."""
    return [Outcome(error=copy.copy(error) if number else error) for number in range(count)]

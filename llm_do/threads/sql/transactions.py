"""Transactions on a connection: reads that see one state of the store, and writes of several runs in one commit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from llm_do.errors import LlmDoError
from llm_do.runtime.record.store.unreadable_data import UNREADABLE
from llm_do.threads.sql.database import Database, StoreConnection
from llm_do.threads.sql.store_errors import UncertainCommitError, UnreadableDataError, unreadable_error

__all__ = ["Job", "Outcome", "commit", "read_all", "roll_back_on_error", "same_error", "write_all"]

T = TypeVar("T")

Job: TypeAlias = Callable[[Database], Any]
"""What happens inside a transaction. It may be run twice, so it changes nothing but the store."""


@dataclass(slots=True)
class Outcome:
    """What a job returned or raised."""

    value: Any = None
    error: BaseException | None = None


class _GroupError(Exception):
    """The transaction of several jobs failed as a whole."""


def _carry_out(connection: StoreConnection, job: Job) -> Any:
    """Run a job inside a transaction; what it can't make sense of in the store is an error that says so."""
    try:
        return job(connection.db)
    except (LlmDoError, UnicodeEncodeError):  # which has a reason already, or is one of the caller's text
        raise
    except UNREADABLE as error:
        own = isinstance(error, UnreadableDataError)
        raise unreadable_error(connection.name, str(error) if own else f"{type(error).__name__}: {error}") from error


def commit(connection: StoreConnection) -> None:
    """End a transaction; returns once it is on disk."""
    connection.commit()


@contextmanager
def roll_back_on_error(connection: StoreConnection) -> Generator[None]:
    """Roll a transaction back if it fails, and raise the error that says why."""
    try:
        yield
    except BaseException:
        connection.roll_back()
        raise


def read_all(connection: StoreConnection, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs that only read, in one transaction."""
    return _transaction(connection, lambda: [_outcome_of(connection, job) for job in jobs], writes=False)


def write_all(connection: StoreConnection, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs in one transaction, each undone by itself if it fails.

    Most often none does, so there are savepoints only in a second transaction, if the first had to be rolled back. If
    that fails as a whole, each job gets one of its own, and an error reaches only those it concerns. Once the
    connection is lost for good, all jobs that are left fail with it.
    """
    if len(jobs) > 1:
        for run in (_all_or_none, _within_savepoint):
            try:
                return _write_together(connection, jobs, run)
            except _GroupError:
                pass
    outcomes: list[Outcome] = []
    for job in jobs:
        outcome = _write(connection, job)
        if outcome.error is not None and not connection.is_intact:
            return outcomes + same_error(outcome.error, len(jobs) - len(outcomes))
        outcomes.append(outcome)
    return outcomes


def _transaction(connection: StoreConnection, body: Callable[[], T], *, writes: bool) -> T:
    def once() -> T:
        connection.begin(writes=writes)
        with roll_back_on_error(connection):
            value = body()
            commit(connection)
        connection.check()
        return value

    with connection.translate_errors():
        return connection.carry_out(once, writes=writes)


def _write(connection: StoreConnection, job: Job) -> Outcome:
    try:
        return Outcome(_transaction(connection, lambda: _carry_out(connection, job), writes=True))
    except BaseException as error:  # noqa: BLE001 (raised where the outcome is waited for)
        return Outcome(error=error)


def _write_together(
    connection: StoreConnection, jobs: Sequence[Job], run: Callable[[StoreConnection, Job], Outcome]
) -> list[Outcome]:
    def once() -> list[Outcome]:
        connection.begin(writes=True)
        try:
            with roll_back_on_error(connection):
                outcomes = [run(connection, job) for job in jobs]
                commit(connection)
        except (_GroupError, UncertainCommitError):
            raise
        except Exception as error:
            raise _GroupError from error
        connection.check()
        return outcomes

    with connection.translate_errors():
        return connection.carry_out(once, writes=True)


def _all_or_none(connection: StoreConnection, job: Job) -> Outcome:
    return Outcome(_carry_out(connection, job))


def _within_savepoint(connection: StoreConnection, job: Job) -> Outcome:
    db = connection.db
    db.execute("SAVEPOINT job")
    outcome = _outcome_of(connection, job)
    if outcome.error is not None:
        if not connection.in_transaction:  # SQLite rolls everything back when the disk is full
            raise _GroupError from outcome.error
        db.execute("ROLLBACK TO job")
    db.execute("RELEASE job")
    return outcome


def _outcome_of(connection: StoreConnection, job: Job) -> Outcome:
    try:
        with connection.translate_errors():
            return Outcome(_carry_out(connection, job))
    except Exception as error:  # noqa: BLE001 (raised where the outcome is waited for)
        return Outcome(error=error)


def same_error(error: BaseException, count: int) -> list[Outcome]:
    """The outcomes of jobs that failed for one reason; each has an error of its own, because raising changes it."""
    return [Outcome(error=copy.copy(error) if number else error) for number in range(count)]

"""Errors of a store that its users treat differently from others."""

from __future__ import annotations

from llm_do._startup.option_names import option_name
from llm_do.errors import StoreError, ThreadConflict

__all__ = [
    "LostStoreError",
    "ReadOnlyStoreError",
    "UncertainCommitError",
    "UnreadableDataError",
    "no_locks_error",
    "thread_conflict",
    "unreadable_error",
]


class LostStoreError(StoreError):
    """The store was deleted while it was in use."""


class ReadOnlyStoreError(StoreError):
    """The store can be read, but not written."""


class UncertainCommitError(StoreError):
    """The connection was lost at a commit, and what became of it can't be asked: it must not be repeated blindly."""


class UnreadableDataError(ValueError):
    """Something in the store isn't as it is written; whoever has the store's connection says where that is."""


def no_locks_error(name: str) -> StoreError:
    """The error for a store whose file system has no locks, without which processes overwrite each other's data.

    Args:
        name: The store's name in messages.
    """
    return StoreError(
        f"{name} can't be used: its file system has no file locks",
        hint="Keep the record on another disk (`"
        f"{option_name('--store FILE', 'store=FILE')}`) or in PostgreSQL, or keep none (`"
        f"{option_name('--no-record', 'record=False')}`). A "
        "network drive needs its lock service.",
    )


def thread_conflict(thread_id: str) -> ThreadConflict:
    """Create the error for the second of two concurrent writers."""
    return ThreadConflict(
        f"thread {thread_id!r} was continued or changed meanwhile",
        hint="Run again to continue from the thread as it is now; this run's messages are kept as a branch of it.",
    )


def unreadable_error(name: str, fault: str) -> StoreError:
    """The error for data that no llm-do of this version writes.

    Args:
        name: The store's name in messages.
        fault: What is wrong with it.
    """
    return StoreError(
        f"{name} has data that can't be read: {fault}",
        hint="Another program or another version has changed it, or it is damaged; moving the file away starts a "
        "new one.",
    )

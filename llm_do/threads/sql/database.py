"""What SQL is run on, whichever database it is, and what a connection to one does.

Statements are written once for SQLite and PostgreSQL: `?` or `:name` for values, `ON CONFLICT` instead of `INSERT OR`,
JSON read in Python, no row numbers. Text sorts by its code points, and integers have 64 bits. `floor(x)` is in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

__all__ = ["Database", "Owners", "Rows", "StoreConnection"]

T = TypeVar("T")


class Rows(Protocol):
    """What a statement returns."""

    @property
    def rowcount(self) -> int:
        """How many rows it has changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """Runs statements inside the current transaction."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ..., /) -> Rows:
        """Run a statement."""
        ...

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once with each of the values."""
        ...

    def rank(self, query: str, values: Sequence[Any], words: Sequence[str]) -> list[tuple[int, float]]:
        """Search texts by the database's full text search.

        Args:
            query: Selects numbers and texts, whose words are those of `search_words`, with spaces between them.
            values: Its values.
            words: The words to look for, also as beginnings of longer ones, unless they are very short.

        Returns:
            The numbers of the texts that have at least one of the words, each with how well it fits.
        """
        ...


class StoreConnection(Protocol):
    """A connection to a store, used by one thread at a time."""

    @property
    def db(self) -> Database:
        """What statements are run on."""
        ...

    @property
    def name(self) -> str:
        """The store's name in messages."""
        ...

    @property
    def place(self) -> str:
        """What another store would need: a folder, or a database."""
        ...

    @property
    def is_intact(self) -> bool:
        """Whether it can be used for another transaction."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; the database may have rolled it back on an error."""
        ...

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise the database's errors as `StoreError`s that explain them in one sentence."""
        ...

    def carry_out(self, transaction: Callable[[], T], *, writes: bool) -> T:
        """Call a function that is one transaction, again if the database asks for it."""
        ...

    def begin(self, *, writes: bool) -> None:
        """Begin a transaction: one that writes alone, or one that reads one state of the store."""
        ...

    def commit(self) -> None:
        """End a transaction; returns once it is on disk."""
        ...

    def roll_back(self) -> None:
        """Undo what the transaction has done."""
        ...

    def check(self) -> None:
        """Raise `StoreError` if what was committed isn't in the store."""
        ...

    def version(self) -> int:
        """Return the store's schema version; 0 for an empty one."""
        ...

    def set_version(self, version: int) -> None:
        """Set the store's schema version, in the current transaction."""
        ...

    def close(self) -> None:
        """Close it; what is on disk is, whatever happens here."""
        ...


class Owners(Protocol):
    """Which recording processes are alive."""

    @property
    def own(self) -> str:
        """This process's id."""
        ...

    def claim(self) -> str:
        """Return this process's id, and mark it as alive: under another id if its mark was lost.

        Raises:
            StoreError: It can't be marked.
        """
        ...

    def holds(self, owner: str) -> bool:
        """Whether this process is marked as alive under an id."""
        ...

    def alive(self, db: Database, owner: str) -> bool:
        """Whether a process is alive."""
        ...

    def forget(self) -> None:
        """Be another process than the one this was forked from, which stays marked."""
        ...

    def release(self) -> None:
        """Stop marking this process as alive."""
        ...

"""SQLite's connection, with its full text search.

A search has an index of its own, in memory: what it looks through is bounded, so there is no index in the store that a
process with another SQLite would have to keep up to date, and a store that can only be read is searched like any other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from llm_do.text.search_words import is_beginning
from llm_do.threads.sqlite.checked_rows import RowCheck, row_check

__all__ = ["SqliteDatabase"]

MOST_CHECKS = 500
"""Statements whose columns a connection remembers."""


class SqliteDatabase(sqlite3.Connection):
    """A connection to a SQLite database.

    Example:
        >>> db = SqliteDatabase(":memory:")
        >>> db.rank("SELECT 7, 'her chair is red'", (), ["chair"])[0][0]
        7
        >>> db.close()
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._checks: dict[str, RowCheck | None] = {}

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        """Run a statement, whose rows are checked as they are read."""
        cursor = super().execute(sql, values)
        if sql not in self._checks:
            if len(self._checks) >= MOST_CHECKS:
                self._checks.clear()
            found = cursor.description
            self._checks[sql] = row_check([column[0] for column in found]) if found is not None else None
        check = self._checks[sql]
        if check is not None:
            cursor.row_factory = check
        return cursor

    def rank(self, query: str, values: Sequence[Any], words: Sequence[str]) -> list[tuple[int, float]]:
        """Search texts by FTS5, or word by word where SQLite is built without it."""
        texts: list[tuple[int, str]] = self.execute(query, values).fetchall()
        with closing(sqlite3.connect(":memory:")) as index:
            try:
                index.execute("CREATE VIRTUAL TABLE texts USING fts5 (words, tokenize = 'unicode61')")
            except sqlite3.OperationalError:  # no such module
                return count_words(texts, words)
            index.executemany("INSERT INTO texts (rowid, words) VALUES (?, ?)", texts)
            wanted = " OR ".join(f'"{word}"{"*" if is_beginning(word) else ""}' for word in words)
            found = index.execute("SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?", (wanted,))
            return [(int(number), float(score)) for number, score in found]


def count_words(texts: Sequence[tuple[int, str]], words: Sequence[str]) -> list[tuple[int, float]]:
    """Search texts without an index; how well one fits is how many of the words it has.

    Example:
        >>> count_words([(1, "a red chair"), (2, "a table")], ["cha", "red", "ta"])
        [(1, 2.0)]
    """
    counted = [
        (number, float(sum(any(_fits(own, word) for own in text.split()) for word in words))) for number, text in texts
    ]
    return [(number, score) for number, score in counted if score]


def _fits(own: str, word: str) -> bool:
    return own.startswith(word) if is_beginning(word) else own == word

"""Rows as the columns of a store are declared: SQLite lets a file hold anything anywhere, such as bytes as a text."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from llm_do.threads.sql.store_errors import UnreadableDataError

__all__ = ["BLOBS", "NUMBERS", "TIMES", "RowCheck", "row_check"]

BLOBS = frozenset({"digest", "files", "history", "links", "setup"})
"""The columns that hold bytes, each of them in one table at least."""

TIMES = frozenset((
    "added", "answered", "asked", "begun", "claimed", "created", "ended", "finished", "first_token", "started", "time",
    "updated", "used",
))  # fmt: skip
"""The columns that hold seconds since the epoch, and nothing else in any table."""

NUMBERS = frozenset((
    "attempt", "budget", "budget_each", "bytes", "concurrency", "cost", "depth", "done", "exchanges", "input_tokens",
    "number", "ordinal", "output_tokens", "requests", "seq", "tokens", "total", "total_tokens", "uses",
))  # fmt: skip
"""The columns that hold other numbers, and nothing else in any table."""

END_OF_TIME = 253_402_214_400
"""The last day of the year 9999: no calendar has later ones, whatever the time zone."""


RowCheck: TypeAlias = Callable[[sqlite3.Cursor, tuple[Any, ...]], tuple[Any, ...]]


def row_check(columns: Sequence[str]) -> RowCheck:
    """Return a row factory which refuses rows that aren't as their columns are declared.

    Args:
        columns: The names of a statement's columns; one that isn't a table's may hold anything but bytes.
    """
    fits = tuple(_fit_of(column) for column in columns)

    def check(_: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        for at, value in enumerate(row):
            if value is not None and not fits[at](value):
                raise UnreadableDataError(_fault(columns, row, at))
        return row

    return check


def _fit_of(column: str) -> Callable[[Any], bool]:
    if column in TIMES:
        return _is_time
    if column in NUMBERS:
        return _is_number
    return _is_anything if column in BLOBS else _is_no_bytes


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < END_OF_TIME


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_no_bytes(value: object) -> bool:
    return type(value) is not bytes


def _is_anything(_: object) -> bool:
    return True


def _fault(columns: Sequence[str], row: tuple[Any, ...], at: int) -> str:
    """What is wrong with a row, and which it is, if it has an id."""
    name, value = columns[at], row[at]
    kind = "a time" if name in TIMES else "a number" if name in NUMBERS else "a text"
    ids = (f" ({column} {repr(row[number])[:60]})" for number, column in enumerate(columns) if column in ("id", "run"))
    shown = repr(value[:40] if isinstance(value, str | bytes) else value)
    return f"`{name}` is {shown}, which isn't {kind}{next(ids, '')}"

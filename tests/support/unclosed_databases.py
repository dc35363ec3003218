"""A warning about each SQLite connection that is dropped without being closed, as Python 3.13 and later give it."""

from __future__ import annotations

import os
import sqlite3
import warnings
from functools import cache
from typing import Any

__all__ = ["warn_of_unclosed"]

_connect = sqlite3.connect


def warn_of_unclosed() -> None:
    """Warn of connections that are opened from now on."""
    sqlite3.connect = _watched_connect  # type: ignore[assignment]


def _watched_connect(*arguments: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **options: Any) -> Any:
    connection = _connect(*arguments, factory=_watched(factory), **options)
    connection.opened_in = os.environ.get("PYTEST_CURRENT_TEST", "no test")  # type: ignore[attr-defined]
    return connection


@cache
def _watched(kind: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
    def __del__(self: Any) -> None:  # noqa: N807 (it is a method)
        try:
            self.total_changes  # noqa: B018 (which only an open connection has)
        except sqlite3.ProgrammingError:
            return
        where = getattr(self, "opened_in", "unknown")
        warnings.warn(f"unclosed database, opened in {where}", ResourceWarning, stacklevel=1)

    return type(kind.__name__, (kind,), {"__del__": __del__})

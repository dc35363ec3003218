"""Tables of cases that one test checks row by row.

Each parametrized case is collected, set up and reported on its own, by every worker, which takes longer than checking
a pure function. `each_row` is for rows that need nothing of their own: they share the test's fixtures, and a failure
lists every row that is wrong.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["each_row"]

FAILURES = (Exception, pytest.fail.Exception)


def each_row(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body for every row of a table, in one test.

    Args:
        names: The parameters that a row fills, separated by commas.
        rows: The rows; tuples if there are several names.
    """
    parameters = [name.strip() for name in names.split(",")]
    table = [row if len(parameters) > 1 else (row,) for row in rows]
    assert table, "the table is empty"

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(body)
        def test(**fixtures: object) -> None:
            failures = [
                f"{row!r}: {failure}"
                for row in table
                if (failure := _failure(body, {**fixtures, **dict(zip(parameters, row, strict=True))}))
            ]
            if failures:
                pytest.fail("\n".join([f"{len(failures)} of {len(table)} rows fail", *failures]), pytrace=False)

        signature = inspect.signature(body)
        own = [each for each in signature.parameters.values() if each.name not in parameters]
        test.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return test

    return decorate


def _failure(body: Callable[..., None], arguments: dict[str, object]) -> str | None:
    """Run the body, and return the line that fails and why, or None."""
    try:
        body(**arguments)
    except FAILURES as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = f" (line {where.tb_lineno} of {where.tb_frame.f_code.co_filename})" if where is not None else ""
        return f"{type(error).__name__}: {error}{line}"
    return None

"""Tables of cases: checked row by row in one test, or sampled.

Each parametrized case is collected, set up and reported on its own, by every worker, which takes longer than checking
a pure function. `each_row` is for rows that need nothing of their own: they share the test's fixtures, and a failure
lists every row that is wrong. `sampled` is for rows that are each a run of its own: some are quick tests, all run
among the slow ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["each_row", "sampled"]

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


def sampled(rows: Iterable[Any], every: int = 4) -> list[Any]:
    """Return the rows as values of `parametrize`, all but the first, and each fourth after it, marked `slow`."""
    return [row if number % every == 0 else _slow(row) for number, row in enumerate(rows)]


def _slow(row: Any) -> Any:
    values: Sequence[Any] = row if isinstance(row, tuple) else (row,)
    return pytest.param(*values, marks=pytest.mark.slow)


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

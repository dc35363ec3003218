"""`Total`: what a run takes at most, as numbers to calculate with, each of which may be unbounded."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from llm_do._startup.frozen import frozen

__all__ = ["Number", "Total", "Unbounded", "at_most", "larger", "plus", "times"]


@frozen
class Unbounded:
    """Why there is no bound, and what would be one."""

    reason: str
    place: str = ""
    remedy: str = ""


@frozen
class Total:
    """A worst case: numbers, or why there is none.

    Args:
        requests: Model requests, retries included.
        tool_calls: Tool calls that run.
        cost_usd: US dollars.
        width: Model requests that may be in flight at once.
        calls: Calls of agents.
    """

    requests: int | Unbounded = 0
    tool_calls: int | Unbounded = 0
    cost_usd: float | Unbounded = 0.0
    width: int | Unbounded = 0
    calls: int | Unbounded = 0

    def __add__(self, other: Total) -> Total:
        """Return the worst case of both, one after the other or side by side."""
        return Total(*(plus(one, two) for one, two in _pairs(self, other)))  # pyright: ignore[reportArgumentType]

    def times(self, count: int) -> Total:
        """Return the worst case of doing it `count` times."""
        return Total(*(times(one, count) for one in _values(self)))  # pyright: ignore[reportArgumentType]

    def larger(self, other: Total) -> Total:
        """Return the larger of each number."""
        return Total(*(larger(one, two) for one, two in _pairs(self, other)))  # pyright: ignore[reportArgumentType]

    @classmethod
    def unbounded(cls, why: Unbounded) -> Total:
        """Return a worst case without any bound."""
        return cls(why, why, why, why, why)


Number = int | float | Unbounded


def _values(total: Total) -> tuple[Number, ...]:
    return (total.requests, total.tool_calls, total.cost_usd, total.width, total.calls)


def _pairs(one: Total, two: Total) -> Iterator[tuple[Number, Number]]:
    return zip(_values(one), _values(two), strict=True)


def plus(one: Number, two: Number) -> Number:
    return one if isinstance(one, Unbounded) else two if isinstance(two, Unbounded) else one + two


def times(one: Number, count: int) -> Number:
    if not count:
        return 0
    try:
        return one if isinstance(one, Unbounded) else one * count
    except OverflowError:
        return inf


def larger(one: Number, two: Number) -> Number:
    return one if isinstance(one, Unbounded) else two if isinstance(two, Unbounded) else max(one, two)


def at_most(one: Number, limit: Number | None) -> Number:
    if limit is None or isinstance(limit, Unbounded):
        return one
    return limit if isinstance(one, Unbounded) else min(one, limit)

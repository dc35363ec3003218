"""The calls that a tool's own code makes: they are part of its step, and aren't made again when it is replayed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["inner_calls", "is_below", "note_inner_call"]

_CALLS: ContextVar[list[str] | None] = ContextVar("llm_do_inner_calls", default=None)


@contextmanager
def inner_calls() -> Generator[list[str]]:
    """Collect the ids of the calls that are made by the code inside, without those that they make themselves."""
    calls: list[str] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


def note_inner_call(call_id: str) -> None:
    """Note that a call is made."""
    calls = _CALLS.get()
    if calls is not None and not is_below(call_id, calls):
        calls.append(call_id)


def is_below(call_id: str, calls: list[str]) -> bool:
    """Whether a call, or the key of a step, is one of these calls or belongs to one of them.

    Example:
        >>> is_below("a.1.2", ["a.1"]), is_below("a.1/r1", ["a.1"]), is_below("a.12", ["a.1"])
        (True, True, False)
    """
    return any(call_id == each or call_id.startswith((f"{each}.", f"{each}/")) for each in calls)

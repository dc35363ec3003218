"""The calls that a step's own code makes: they are part of it, and aren't made again when it is replayed."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

__all__ = ["current_step", "inner_calls", "is_below", "note_inner_call"]


@dataclass(slots=True)
class _Inside:
    """The step whose code is running, and the calls that it has made."""

    key: str
    calls: list[str] = field(default_factory=list[str])


_INSIDE: ContextVar[_Inside | None] = ContextVar("llm_do_inside_step", default=None)


@contextmanager
def inner_calls(key: str) -> Generator[list[str]]:
    """Collect the ids of the calls that the code of a step makes, without those that these make themselves."""
    inside = _Inside(key)
    token = _INSIDE.set(inside)
    try:
        yield inside.calls
    finally:
        _INSIDE.reset(token)


def current_step() -> str:
    """The key of the step whose code is running; empty outside of steps."""
    inside = _INSIDE.get()
    return inside.key if inside is not None else ""


def note_inner_call(call_id: str) -> None:
    """Note that a call is made."""
    inside = _INSIDE.get()
    if inside is not None and not is_below(call_id, inside.calls):
        inside.calls.append(call_id)


def is_below(call_id: str, calls: Collection[str]) -> bool:
    """Whether a call, or the key of a step, is one of these calls or belongs to one of them.

    Example:
        >>> is_below("a.1.2", ["a.1"]), is_below("a.1/r1", ["a.1"]), is_below("a.12", ["a.1"])
        (True, True, False)
    """
    return any(call_id == each or call_id.startswith((f"{each}.", f"{each}/")) for each in calls)

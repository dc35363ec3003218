"""How far a batch is, for whoever watches it."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.results import ErrorRecord

__all__ = ["FailureKind", "Failures", "InputFailure", "Progress", "Reason"]

Reason: TypeAlias = Literal["done", "stopped", "budget"]
"""Why a batch isn't worked on any more: nothing is left to do, it was stopped, or its budget lets nothing start."""

RATE_WINDOW = 10.0
"""Seconds that the rate is measured over."""

SHOWN_PLACES = 5
"""Places that are remembered of a kind of failure."""


@frozen
class InputFailure:
    """An input whose run failed.

    Args:
        ordinal: Its place.
        run_id: The run.
        status: How the run ended.
        error: Why.
    """

    ordinal: int
    run_id: str
    status: str
    error: ErrorRecord


@dataclass(slots=True)
class FailureKind:
    """Failures that have one reason.

    Args:
        error: The first of them.
        count: Their number.
        places: The first few of the inputs.
    """

    error: ErrorRecord
    count: int = 0
    places: list[int] = field(default_factory=list[int])


class Failures:
    """Failures by kind.

    Example:
        >>> failures = Failures()
        >>> for place in (3, 1):
        ...     kind = failures.add(place, ErrorRecord("ValueError", "no"))
        >>> kind.count, kind.places
        (2, [1, 3])
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], FailureKind] = {}

    def add(self, ordinal: int, error: ErrorRecord) -> FailureKind:
        """Count a failure, and return its kind."""
        key = (error.type, error.message)
        if key not in self._kinds and len(self._kinds) >= MOST_KINDS:
            key = (error.type, "")
        kind = self._kinds.setdefault(key, FailureKind(error))
        kind.count += 1
        kind.places = sorted([*kind.places, ordinal])[:SHOWN_PLACES]
        return kind

    def kinds(self) -> list[FailureKind]:
        """Return the kinds, the most frequent first."""
        return sorted(self._kinds.values(), key=lambda kind: -kind.count)


@dataclass(slots=True)
class Progress:
    """Counts of a batch, which change while it is worked on.

    Args:
        total: The number of inputs.
        completed: Those whose runs have completed.
        failed: Those whose runs have ended in any other way.
        waiting: Those whose runs wait for a person.
        running: Those whose runs this process carries out.
        used: US dollars that the runs that have ended have cost.
        budget: US dollars that they may cost together.
        earlier: How many had ended before this process began.
        failures: The failures of this process.
        waits: What the first few runs wait for, by their ids.
        reason: Why the work has ended; None as long as it lasts.
    """

    total: int
    completed: int = 0
    failed: int = 0
    waiting: int = 0
    running: int = 0
    used: float = 0.0
    budget: float | None = None
    earlier: int = 0
    failures: Failures = field(default_factory=Failures)
    waits: dict[str, ErrorRecord] = field(default_factory=dict[str, ErrorRecord])
    reason: Reason | None = None
    began: float = field(default_factory=time.monotonic)
    _ended: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])

    @property
    def done(self) -> int:
        """The number of inputs whose runs have ended."""
        return self.completed + self.failed

    @property
    def seconds(self) -> float:
        """How long this process has worked on it."""
        return time.monotonic() - self.began

    def rate(self) -> float | None:
        """Runs that end in a second, as of late; None at the beginning."""
        now = time.monotonic()
        if not self._ended or now - self._ended[-1][0] >= RATE_STEP:
            self._ended.append((now, self.done))
        while len(self._ended) > 2 and now - self._ended[0][0] > RATE_WINDOW:
            self._ended.popleft()
        began, before = self._ended[0]
        if self.done == before or now - began < RATE_STEP:
            return None
        return (self.done - before) / (now - began)

    def seconds_left(self) -> float | None:
        """How long the rest will take at this rate; None if that isn't known."""
        rate, left = self.rate(), self.total - self.done - self.waiting
        return left / rate if rate and left > 0 else None


RATE_STEP = 0.5
"""Seconds between two moments that the rate remembers."""

MOST_KINDS = 100
"""Kinds of failures that differ in their messages; messages may have something of each input in them."""

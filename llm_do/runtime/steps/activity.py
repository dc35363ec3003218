"""What a durable run is doing: once nothing but its questions is open, it can wait without a process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Activity"]


@dataclass(slots=True, eq=False)
class _Work:
    """Something that is being done; while a question waits inside, it only waits, too."""

    questions: int = 0
    ended: bool = False


_WORK: ContextVar[tuple[_Work, ...]] = ContextVar("llm_do_work", default=())


class Activity:
    """Counts what a run is doing.

    Example:
        >>> activity = Activity()
        >>> with activity.busy():
        ...     running = activity.running
        ...     with activity.waiting():
        ...         waiting = activity.running
        >>> running, waiting, activity.running
        (1, 0, 0)
    """

    def __init__(self) -> None:
        self.running = 0
        self.changes = 0

    @property
    def is_inside(self) -> bool:
        """Whether this is asked inside of something that the run is doing."""
        return any(not work.ended for work in _WORK.get())

    @contextmanager
    def busy(self) -> Generator[None]:
        """Surround what the run is doing: a request, the code of a tool or of a step, asking a person who is there."""
        work = _Work()
        token = _WORK.set((*_WORK.get(), work))
        self._count(1)
        try:
            yield
        finally:
            _WORK.reset(token)
            work.ended = True
            if not work.questions:
                self._count(-1)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Surround the wait for an answer: what it happens in isn't counted meanwhile."""
        around = [work for work in _WORK.get() if not work.ended]
        for work in around:
            work.questions += 1
            if work.questions == 1:
                self._count(-1)
        try:
            yield
        finally:
            for work in around:
                work.questions -= 1
                if not work.questions and not work.ended:
                    self._count(1)

    def _count(self, number: int) -> None:
        self.running += number
        self.changes += 1

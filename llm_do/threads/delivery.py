"""`Delivery`: the events of a durable run, each delivered once it and all before it are on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm_do.runtime.record.events.event import Event

__all__ = ["Delivery"]


class Delivery:
    """The events of one run that aren't delivered yet.

    Args:
        deliver: Delivers an event.
    """

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._waiting: list[tuple[Event, bool]] = []
        self._in_batch = 0

    def add(self, event: Event) -> None:
        """Add an event that the next batch writes."""
        self._waiting.append((event, True))

    def add_text(self, event: Event) -> bool:
        """Add an event that isn't stored, which is delivered at once if nothing waits before it.

        Returns:
            Whether it waits for what isn't being written.
        """
        if not self._waiting:
            self._deliver(event)
            return False
        unwritten = any(stored for _, stored in self._waiting[self._in_batch :])
        self._waiting.append((event, False))
        return unwritten

    def take(self) -> None:
        """Note that a batch has all that waits."""
        self._in_batch = len(self._waiting)

    def put_back(self) -> None:
        """Note that the batch wasn't written."""
        self._in_batch = 0

    def deliver(self) -> None:
        """Deliver what the batch has, which is on disk now, and the text that follows."""
        end = self._in_batch
        while end < len(self._waiting) and not self._waiting[end][1]:
            end += 1
        events, self._waiting, self._in_batch = self._waiting[:end], self._waiting[end:], 0
        for event, _ in events:
            self._deliver(event)

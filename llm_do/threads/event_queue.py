"""`EventQueue`: the events of a run that aren't in its journal yet, as the text that is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.redaction import Redactor
from llm_do.runtime.record.store.store_writes import EventRow
from llm_do.text.large_data.conversion import is_large
from llm_do.threads.store.codec import event_text, large_event_text

if TYPE_CHECKING:
    from llm_do.runtime.record.events.event import Event

__all__ = ["EventQueue"]


class EventQueue:
    """Events in their order; the text of a large one is made in a worker thread, before the batch that has it.

    Args:
        redact: Removes secrets.
    """

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._queued: list[EventRow | dict[str, Any]] = []

    def add(self, event: Event) -> None:
        """Queue an event."""
        data = event.to_dict()
        self._queued.append(data if is_large(data) else _row(data, event_text(data, self._redact)))

    async def write_large(self) -> None:
        """Make the texts that `take` would otherwise make where it is called."""
        while large := [item for item in self._queued if isinstance(item, dict)]:  # others may come meanwhile
            row = await run_in_worker(self._large_row, large[0])
            self._queued = [row if item is large[0] else item for item in self._queued]

    def take(self) -> list[EventRow]:
        """Return what is queued, and queue it no longer."""
        queued, self._queued = self._queued, []
        return [self._large_row(item) if isinstance(item, dict) else item for item in queued]

    def put_back(self, rows: Sequence[EventRow]) -> None:
        """Queue rows again, before all others."""
        self._queued[:0] = rows

    def _large_row(self, data: dict[str, Any]) -> EventRow:
        return _row(data, large_event_text(data, self._redact))


def _row(data: dict[str, Any], text: str) -> EventRow:
    return EventRow(data["seq"], data["time"], data["type"], text)

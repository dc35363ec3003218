"""`MessageLog`: which messages of a thread's history a run has added, as the rows that store them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.canonical_messages import is_large_message
from llm_do.runtime.record.redaction import Redactor
from llm_do.runtime.record.store.store_writes import MessageRow
from llm_do.runtime.record.stored_records import ThreadRecord
from llm_do.text.generated_ids import new_id
from llm_do.threads.store.codec import large_message_text, message_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["MessageLog"]

SLICE = 200
"""Messages converted before the event loop gets its turn."""


class MessageLog:
    """The messages of one run on a thread.

    Args:
        thread: The thread as the run found it.
        history: Its messages that the run started from.
        redact: Removes secrets.
    """

    def __init__(self, thread: ThreadRecord, history: Sequence[ModelMessage], redact: Redactor) -> None:
        self._thread = thread
        self._history = history
        self._redact = redact
        self._past: int | None = None
        self._added: list[tuple[ModelMessage, MessageRow]] = []
        self._new: list[MessageRow] = []
        self._dropped: list[str] = []

    @property
    def tip(self) -> str | None:
        """The id of the run's newest message."""
        return self._added[-1][1].id if self._added else None

    async def track(self, messages: Sequence[ModelMessage], *, exact: bool) -> None:
        """Queue the messages this run has added, and drop those that have changed since they were queued.

        Args:
            messages: The complete history as the run has it.
            exact: Compare known messages by content, and not only by identity.
        """
        if self._past is None:
            self._past = _common_length(self._history, messages)
        fresh = messages[self._past :]
        same = await self._unchanged(fresh, exact=exact)
        for _, row in self._added[same:]:
            if row in self._new:
                self._new.remove(row)
            else:
                self._dropped.append(row.id)
        del self._added[same:]
        for number, message in enumerate(fresh[same:], 1):
            parent = self.tip or self._thread.head
            depth = self._thread.length + len(self._added)
            row = MessageRow(new_id(), parent, depth, time.time(), await self._text(message))
            self._added.append((message, row))
            self._new.append(row)
            if number % SLICE == 0:
                await asyncio.sleep(0)

    async def _unchanged(self, fresh: Sequence[ModelMessage], *, exact: bool) -> int:
        """Count the leading messages that are as they were queued."""
        for number, ((known, row), message) in enumerate(zip(self._added, fresh, strict=False)):
            if (exact or known is not message) and row.body != await self._text(message):
                return number
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        return min(len(self._added), len(fresh))

    async def _text(self, message: ModelMessage) -> str:
        if is_large_message(message):
            return await run_in_worker(large_message_text, message, self._redact)
        return message_text(message, self._redact)

    def take(self) -> tuple[Sequence[MessageRow], Sequence[str]]:
        """Return the rows to write and the ids of those to delete, since the last time."""
        taken = self._new, self._dropped
        self._new, self._dropped = [], []
        return taken

    def put_back(self, rows: Sequence[MessageRow], dropped: Sequence[str]) -> None:
        """Queue again what couldn't be written."""
        self._new[:0] = rows
        self._dropped[:0] = dropped


def _common_length(history: Sequence[ModelMessage], messages: Sequence[ModelMessage]) -> int:
    """Count the leading messages that come from the thread."""
    count = 0
    for ours, theirs in zip(history, messages, strict=False):
        if ours is not theirs and ours != theirs:
            break
        count += 1
    return count

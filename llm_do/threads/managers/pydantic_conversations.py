"""`Conversations`: a store's threads as a PydanticAI `ConversationStore`, with branching and forking."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.usage import RunUsage

from llm_do.errors import ThreadConflict
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.store_writes import MessageRow
from llm_do.runtime.record.stored_records import StoredMessage, ThreadRecord, new_thread
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.threads.store.codec import message_text

__all__ = ["Conversations"]

_USAGE = TypeAdapter(RunUsage)
_DEFERRED = TypeAdapter(DeferredToolRequests)


class Conversations(ConversationStore):
    """One user's threads for code that uses PydanticAI: a conversation is a thread with the same id.

    Args:
        store: The store to use.
        user_id: The user whose threads to access; other users' threads are invisible. A conversation's `scope` is
            the user.

    Example:
        >>> import asyncio
        >>> from llm_do.threads import memory_store
        >>> asyncio.run(Conversations(memory_store()).load("none")) is None
        True
    """

    def __init__(self, store: ThreadStore, user_id: str | None = None) -> None:
        self._store = store
        self._user = user_id

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or None if it doesn't exist."""
        record = await self._store.thread(conversation_id, self._user)
        return _record(record) if record is not None else None

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """List this user's records, newest first."""
        if scope is not None and scope != self._user:
            return []
        return [_record(record) for record in await self._store.threads(self._user, limit=limit)]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Save a record together with new entries; the thread's settings, state and toolkits don't change."""
        stored = await self._store.thread(record.conversation_id, self._user)
        if (stored.revision if stored is not None else None) != expected_revision:
            raise ConversationConflict(record.conversation_id)
        base = stored or new_thread(record.conversation_id, self._user)
        if stored is None and record.forked_from is not None:
            base = await self._store.thread(record.forked_from, self._user) or base
        if stored is None:
            base = replace(base, created=0.0)
        carried: dict[str, Any] = {
            **base.carried,
            "usage": _USAGE.dump_python(record.usage, mode="json"),
            "deferred": _DEFERRED.dump_python(record.deferred_tool_requests, mode="json")
            if record.deferred_tool_requests is not None
            else None,
            "forked_from": record.forked_from,
            "forked_at": record.forked_at,
        }
        new = replace(
            base,
            id=record.conversation_id,
            head=record.head_id,
            branches=tuple(record.branches),
            carried=carried,
        )
        try:
            saved = await self._store.save_thread(
                new, expected=expected_revision, messages=await self._rows(new_entries)
            )
        except ThreadConflict as error:
            raise ConversationConflict(record.conversation_id) from error
        record.revision = saved.revision

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation and the messages that no other one shares."""
        try:
            found = await self._store.delete_thread(conversation_id, self._user, expected=expected_revision)
        except ThreadConflict as error:
            raise ConversationConflict(conversation_id) from error
        if not found:
            raise ConversationConflict(conversation_id)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return one message."""
        found = await self._store.message(entry_id)
        if found is None:
            raise LookupError(entry_id)
        return _entry(found)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Read the messages up to `head_id` in one query."""
        return [_entry(each) for each in await self._store.history(head_id, limit=limit)]

    async def _rows(self, entries: Sequence[ConversationEntry]) -> list[MessageRow]:
        rows: list[MessageRow] = []
        redact = redactor()
        depth = await self._depth(entries[0].parent_id) if entries else 0
        for entry in entries:
            rows.append(MessageRow(entry.id, entry.parent_id, depth, time.time(), message_text(entry.message, redact)))
            depth += 1
        return rows

    async def _depth(self, parent: str | None) -> int:
        return 0 if parent is None else len(await self._store.history(parent))


def _record(record: ThreadRecord) -> ConversationRecord:
    carried = record.carried
    deferred = carried.get("deferred")
    return ConversationRecord(
        conversation_id=record.id,
        head_id=record.head,
        usage=_USAGE.validate_python(carried["usage"]) if carried.get("usage") else RunUsage(),
        deferred_tool_requests=_DEFERRED.validate_json(json.dumps(deferred)) if deferred else None,
        scope=record.user_id,
        forked_from=carried.get("forked_from"),
        forked_at=carried.get("forked_at"),
        branches=list(record.branches),
        revision=record.revision,
        updated_at=datetime.fromtimestamp(record.updated, UTC),
    )


def _entry(message: StoredMessage) -> ConversationEntry:
    return ConversationEntry(id=message.id, parent_id=message.parent, message=message.message)

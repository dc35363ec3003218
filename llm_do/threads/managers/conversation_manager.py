"""`ConversationManager`: the messages of threads, for code outside a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do.errors import ThreadConflict, ToolError, UsageError
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.store_writes import MessageRow
from llm_do.runtime.record.stored_records import StoredMessage, new_thread
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.text.generated_ids import new_id
from llm_do.threads.store.codec import message_text, state_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.messages import Message

__all__ = ["ConversationManager"]


class ConversationManager:
    """Reads and appends messages.

    Args:
        store: The store to use.
        user_id: The user whose threads to access; other users' threads are invisible.
    """

    def __init__(self, store: ThreadStore, user_id: str | None = None) -> None:
        self._store = store
        self._user = user_id

    async def get_messages(
        self,
        thread_id: str,
        *,
        limit: int | None = None,
        before: str | float | None = None,
        after: str | float | None = None,
    ) -> list[StoredMessage]:
        """Return messages of a thread, in order.

        Args:
            thread_id: The thread.
            limit: Return at most this many: the latest, or with `after` the first ones following it.
            before: Only messages before this message (its id) or this time (seconds since the epoch).
            after: Only messages after this message or time.

        Returns:
            The messages; an empty list if the thread doesn't exist or doesn't contain the named message.
        """
        record = await self._store.thread(thread_id, self._user)
        if record is None:
            return []
        limit = None if limit is None else max(limit, 0)
        plain = after is None and not isinstance(before, float | int)
        named = before if isinstance(before, str) else None
        stop = after if isinstance(after, str) else None
        messages = await self._store.history(record.head, limit=limit if plain else None, stop=stop, before=named)
        if stop is not None and messages and messages[0].parent != stop:
            return []
        if isinstance(before, float | int):
            messages = [each for each in messages if each.time < before]
        if isinstance(after, float | int):
            messages = [each for each in messages if each.time > after]
        if limit is None or plain:
            return messages
        return messages[:limit] if after is not None else messages[max(len(messages) - limit, 0) :]

    async def add_messages(
        self,
        thread_id: str,
        messages: Sequence[ModelMessage | Message | Mapping[str, Any]],
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Append messages to a thread, creating it if necessary.

        Args:
            thread_id: The thread.
            messages: PydanticAI's messages, those of `llm_do.messages`, or dicts in OpenAI's format.
            metadata: JSON data to store with each message; secrets are redacted, as in messages.

        Returns:
            The ids of the new messages.

        Raises:
            UsageError: Something isn't a message, or the metadata isn't JSON data.
        """
        from llm_do.runtime.record.histories import as_history

        history = as_history(messages)
        redact = redactor()
        try:
            metadata_text = redact(state_text(metadata, "a message")) if metadata else None
        except ToolError as error:
            raise UsageError("the metadata of messages isn't JSON data", hint=error.hint) from error
        while True:
            record = await self._store.thread(thread_id, self._user) or new_thread(thread_id, self._user)
            rows: list[MessageRow] = []
            for message in history:
                parent = rows[-1].id if rows else record.head
                depth = record.length + len(rows)
                body = message_text(message, redact)
                rows.append(MessageRow(new_id(), parent, depth, time.time(), body, metadata_text))
            head = rows[-1].id if rows else record.head
            try:
                await self._store.save_thread(
                    replace(record, head=head), expected=record.revision or None, messages=rows
                )
            except ThreadConflict:
                continue
            return [row.id for row in rows]

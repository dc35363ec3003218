"""`conversation`: a thread as the page shows it: what was said, which tools were called, and what it runs now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from llm_do.runtime.record.stored_records import RunFilter, StoredMessage, ThreadRecord
from llm_do.threads.store.thread_settings import config_data

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["conversation", "turns"]


async def conversation(store: SqlStore, thread: ThreadRecord, *, limit: int) -> dict[str, Any]:
    """Describe a thread with its latest turns, as JSON data.

    Args:
        store: Where it is.
        thread: The thread.
        limit: The number of messages, the latest ones.
    """
    messages = await store.history(thread.head, limit=limit)
    runs = await store.runs(filter=RunFilter(thread_id=thread.id), limit=50)
    own = [run for run in runs if run.user_id == thread.user_id]
    return {
        "thread_id": thread.id,
        "user_id": thread.user_id,
        "messages": thread.length,
        "created": thread.created,
        "updated": thread.updated,
        "state": dict(thread.state),
        "settings": config_data(thread.config),
        "entry": own[0].entry if own else None,
        "latest": {"run_id": own[0].id, "status": own[0].status} if own else None,
        "turns": list(turns(messages)),
    }


def turns(messages: Sequence[StoredMessage]) -> Iterator[dict[str, Any]]:
    """What was said in messages, in order: `who` is `user`, `agent`, `call`, `result` or `note`."""
    for each in messages:
        for part in each.message.parts:
            found = _turn(part)
            if found is not None:
                yield {**found, "run_id": each.run_id, "time": each.time}


def _turn(part: Any) -> dict[str, Any] | None:
    """One part of a message; None for what isn't said to anyone, such as thinking."""
    kind = part.part_kind
    if kind == "user-prompt":
        return {"who": "user", "text": _text(part.content)}
    if kind == "text":
        return {"who": "agent", "text": part.content} if part.content else None
    if kind == "system-prompt":
        return {"who": "note", "text": part.content}
    if kind.endswith("tool-call"):
        return {"who": "call", "tool": part.tool_name, "args": _arguments(part.args_as_json_str())}
    if kind.endswith("tool-return"):
        answer = {"text": part.model_response_str(), "outcome": part.outcome}
        return {"who": "result", "tool": part.tool_name, **answer}
    return None


def _arguments(text: str) -> Any:
    """A call's arguments; as text where a model wrote what isn't JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(content: object) -> str:
    """What a person wrote; of an attachment only what it is."""
    if isinstance(content, str):
        return content
    items = cast("Sequence[object]", content)
    return "\n".join(
        each if isinstance(each, str) else f"[{getattr(each, 'media_type', type(each).__name__)}]" for each in items
    )

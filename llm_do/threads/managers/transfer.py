"""Export and import of threads as JSON lines; an import is checked completely before anything is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from llm_do.errors import StoreError, ToolError, UsageError
from llm_do.runtime.record.recording import check_id
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.store_writes import MessageRow
from llm_do.runtime.record.stored_records import ThreadRecord
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.text.generated_ids import new_id
from llm_do.text.json_data import json_text
from llm_do.threads.store.codec import message_of, message_text, state_text
from llm_do.threads.store.thread_settings import check_new_config, config_data, config_from_data
from llm_do.threads.store.usable_history import is_valid

__all__ = ["VERSION", "export_thread", "import_lines"]

VERSION = 1
"""The version of the format."""


async def export_thread(store: ThreadStore, record: ThreadRecord) -> list[str]:
    """Write a thread as JSON lines: the thread, then its messages."""
    messages = await store.history(record.head)
    head = {
        "type": "thread",
        "version": VERSION,
        "id": record.id,
        "config": config_data(record.config),
        "state": record.state,
        "toolkits": record.toolkits,
        "messages": len(messages),
        "created": record.created,
        "updated": record.updated,
    }
    lines = [json_text(head)]
    for each in messages:
        data = {"type": "message", "id": each.id, "time": each.time, "run_id": each.run_id, "metadata": each.metadata}
        data["message"] = json.loads(message_text(each.message))
        lines.append(json_text(data))
    return lines


async def import_lines(
    store: ThreadStore, lines: Sequence[str], user_id: str | None, *, name: str | None, source: str
) -> ThreadRecord:
    """Store an exported thread."""
    records = [(number, _parse(line, number, source)) for number, line in enumerate(lines, 1) if line.strip()]
    if not records or records[0][1].get("type") != "thread":
        raise UsageError("the import doesn't start with a thread", file=source, line=1, hint=_HINT)
    head = records[0][1]
    if head.get("version") != VERSION:
        raise UsageError(
            f"unknown version {head.get('version')!r} of an exported thread",
            file=source,
            line=1,
            hint="export the thread again with this version, or import it with the one that wrote it",
        )
    thread_id = head.get("id") if name is None else name
    if not isinstance(thread_id, str) or not thread_id.strip():
        raise UsageError("the thread has no id", file=source, line=1, hint="Pass one with --as.")
    check_id("user", user_id)
    rows, messages = _messages(records[1:], source)
    if head.get("messages") != len(rows):
        raise UsageError(
            f"{head.get('messages')} messages were exported, but the file has {len(rows)}", file=source, hint=_HINT
        )
    if not is_valid(messages):
        raise UsageError("tool calls and results don't match", file=source, hint="Was the file edited by hand?")
    if await store.thread(thread_id, user_id) is not None:
        raise UsageError(f"thread {thread_id!r} already exists", hint="Pass another id with --as.")
    record = replace(_record(head, source), id=thread_id, user_id=user_id, head=rows[-1].id if rows else None)
    return await store.save_thread(record, expected=None, messages=rows)


_HINT = "Import a complete file written by `llm-do threads export`."


def _record(head: dict[str, Any], source: str) -> ThreadRecord:
    """Read the thread from the first line, without its ids."""
    config = _mapping(head.get("config"), "config", source, 1)
    state = head.get("state", {})
    try:
        check_new_config(config)
        state_text(state, "the thread")
    except (UsageError, ToolError) as error:
        raise UsageError(error.message, file=source, line=1, hint=error.hint) from error
    toolkits = _mapping(head.get("toolkits"), "toolkits", source, 1)
    for name in toolkits:
        gates = _mapping(toolkits[name], "toolkits", source, 1)
        _mapping(gates.get("context"), "toolkits", source, 1)
        unlocked = cast("object", gates.get("unlocked_states") or [])
        if not isinstance(unlocked, list) or not all(isinstance(each, str) for each in cast("list[object]", unlocked)):
            raise UsageError(f"the states of toolkit {name!r} are not a list of names", file=source, line=1, hint=_HINT)
    created = _timestamp(head.get("created"), "created", source, 1)
    return ThreadRecord("", None, config_from_data(config), state, toolkits, created=created)


def _messages(records: Sequence[tuple[int, dict[str, Any]]], source: str) -> tuple[list[MessageRow], list[Any]]:
    rows: list[MessageRow] = []
    messages: list[Any] = []
    redact = redactor()
    for number, record in records:
        if record.get("type") != "message":
            raise UsageError(f"unknown record type {record.get('type')!r}", file=source, line=number, hint=_HINT)
        try:
            message = message_of(json.dumps(record.get("message")))
        except StoreError as error:
            raise UsageError(error.message, file=source, line=number, hint=_HINT) from error
        at = _timestamp(record.get("time"), "time", source, number)
        metadata = _mapping(record.get("metadata"), "metadata", source, number)
        metadata_text = redact(json.dumps(metadata)) if metadata else None
        parent = rows[-1].id if rows else None
        rows.append(MessageRow(new_id(), parent, len(rows), at, message_text(message, redact), metadata_text))
        messages.append(message)
    return rows, messages


def _parse(line: str, number: int, source: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON: {error}", file=source, line=number, hint=_HINT) from error
    if not isinstance(data, dict):
        raise UsageError("the line is not a JSON object", file=source, line=number, hint=_HINT)
    return cast("dict[str, Any]", data)


def _mapping(value: object, key: str, source: str, line: int) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{key!r} is not an object", file=source, line=line, hint=_HINT)
    return cast("dict[str, Any]", value)


def _timestamp(value: object, key: str, source: str, line: int) -> float:
    """Read a time in seconds since the epoch; None means now."""
    if value is None:
        return time.time()
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LAST:
        raise UsageError(f"{key!r} is not a time: {value!r}", file=source, line=line, hint=_HINT)
    return float(value)


_LAST = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch."""

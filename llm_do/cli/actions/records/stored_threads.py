"""What `llm-do threads` does with the threads of a project's store."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do.cli.actions.project_store import (
    align_columns,
    is_read_by_person,
    local_time,
    print_from_store,
    shown_cost,
    shown_tokens,
    warn_of_more,
)
from llm_do.cli.arguments.thread_settings import parse_changes
from llm_do.cli.process import stdin
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import ThreadRecord
from llm_do.text.generated_ids import WRITE_MORE, several_begin_alike, short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import truncate_end, with_count
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.threads.store.thread_settings import config_data

if TYPE_CHECKING:
    from llm_do.linker.sources.project_root import ProjectLocation

__all__ = [
    "branch",
    "delete",
    "export",
    "fork",
    "import_thread",
    "is_read_by_person",
    "list_threads",
    "print_from_store",
    "read_export",
    "set_config",
    "show_config",
    "show_thread",
]

_COUNT = "Write --at with at most that number; `llm-do threads show` lists the messages."
_SPEAKERS = {"user-prompt": "user", "text": "assistant", "system-prompt": "system", "thinking": "thinking"}


async def list_threads(
    store: SqlStore,
    location: ProjectLocation,
    user: str | None,
    *,
    every_user: bool,
    limit: int,
    as_json: bool,
    headed: bool = False,
) -> Sequence[str]:
    """Threads, the most recent first, with what their recorded runs have used."""
    await store.recover()
    await _warn_of_old_threads(store, location)
    found = await store.threads_with_totals(user, every_user=every_user, limit=limit + 1)
    if len(found) > limit:
        warn_of_more(limit, "thread")
        del found[limit:]
    if as_json:
        data = [{**_data(record), "tokens": totals.tokens, "cost_usd": totals.cost_usd} for record, totals in found]
        return [json.dumps(data, ensure_ascii=False)]
    rows = [
        [
            record.id,
            *([record.user_id or "-"] if every_user else []),
            with_count(record.length, "message"),
            shown_tokens(totals.tokens),
            shown_cost(totals.cost_usd),
            local_time(record.updated),
        ]
        for record, totals in found
    ]
    header = ("THREAD", *(["USER"] if every_user else []), "LENGTH", "TOKENS", "COST", "CHANGED") if headed else ()
    return align_columns(rows, header) or ["no threads"]


async def _warn_of_old_threads(store: SqlStore, location: ProjectLocation) -> None:
    """Say how many threads the project's next run will delete."""
    from llm_do.linker.sources.stated_settings import stated_keep_days

    days = stated_keep_days(location)
    count = 0 if days is None else await store.prune_threads(time.time() - days * 86_400, dry_run=True)
    if count:
        many = "1 thread wasn't" if count == 1 else f"{count} threads weren't"
        since = "a day" if days == 1 else f"{days} days"
        warn(f"{many} continued for {since} (threads.keep_days) and will be deleted at the end of the next runs")


async def show_thread(
    store: SqlStore, thread: str | None, user: str | None, *, limit: int, as_json: bool
) -> Sequence[str]:
    """A thread, by default the most recent one: its settings, its state, its latest messages."""
    await store.recover()
    if thread is None:
        record = next(iter(await store.threads(user, limit=1)), None)
        if record is None:
            raise UsageError("there are no threads", hint="See `llm-do threads list`, with --user or --all.")
    else:
        record = await _thread(store, thread, user)
    messages = await store.history(record.head, limit=limit)
    if as_json:
        from llm_do.runtime.record.results import messages_data

        data = {**_data(record), "state": record.state, "toolkits": record.toolkits}
        return [
            json.dumps({**data, "messages": messages_data([each.message for each in messages])}, ensure_ascii=False)
        ]
    length, changed = with_count(record.length, "message"), local_time(record.updated)
    lines = [f"thread {sanitize(record.id)}, {length}, last changed {changed}"]
    kept = {"settings": config_data(record.config), "state": record.state, "toolkits": record.toolkits}
    lines += [sanitize(f"{name:8} {json.dumps(data, ensure_ascii=False)}") for name, data in kept.items() if data]
    if record.length > len(messages):
        lines.append(f"... {record.length - len(messages)} earlier messages")
    for each in messages:
        lines += [f"{short_run_id(each.id)} {line}" for line in _message_lines(each.message)]
    return lines


async def show_config(store: SqlStore, thread: str, user: str | None) -> Sequence[str]:
    """A thread's settings as JSON."""
    record = await _thread(store, thread, user)
    return [json.dumps(config_data(record.config), ensure_ascii=False, indent=2)]


async def set_config(
    store: SqlStore, thread: str, values: Sequence[str], user: str | None, location: ProjectLocation
) -> Sequence[str]:
    """Change a thread's settings."""
    record = await store.thread(thread, user)
    changes = parse_changes(values, config_data(record.config) if record is not None else {})
    if "model" in changes:
        from llm_do.cli.arguments.named_models import check_setting
        from llm_do.linker.sources.stated_settings import stated_aliases

        check_setting(changes["model"], stated_aliases(location))
    from llm_do.threads.managers.state_manager import StateManager

    config = await StateManager(store, user).set_thread_config(thread, changes)
    return [json.dumps(config_data(config), ensure_ascii=False, indent=2)]


async def fork(store: SqlStore, thread: str, new: str, user: str | None, *, at: int | None) -> Sequence[str]:
    """Start a new thread with the history of another one."""
    record = await _thread(store, thread, user)
    if await store.thread(new, user) is not None:
        raise UsageError(f"there is a thread {new!r} already", hint="Choose another id.")
    if at is not None and at > record.length:
        raise UsageError(f"thread {thread!r} has {with_count(record.length, 'message')}, not {at}", hint=_COUNT)
    from llm_do.threads.managers.pydantic_conversations import Conversations

    forked = await Conversations(store, user).fork(thread, at=at, new_conversation_id=new)
    return [f"{new}: {with_count(len(forked.messages), 'message')}"]


async def branch(store: SqlStore, thread: str, user: str | None, *, at: int | None, to: str | None) -> Sequence[str]:
    """Continue from an earlier message, or list the branches."""
    record = await _thread(store, thread, user)
    if at is not None and to is not None:
        raise UsageError("--at and --to exclude each other", hint="Keep one of them.")
    if at is None and to is None:
        lines: list[str] = []
        for tip in record.branches:
            last = await store.history(tip, limit=1)
            lines += [f"{each.id} {local_time(each.time)} {' / '.join(_message_lines(each.message))}" for each in last]
        return lines or ["no branches"]
    if at is not None and at > record.length:
        raise UsageError(f"thread {thread!r} has {with_count(record.length, 'message')}, not {at}", hint=_COUNT)
    entry = await _entry(store, record, to) if to is not None else None
    from llm_do.threads.managers.pydantic_conversations import Conversations

    conversations = Conversations(store, user)
    moved = await conversations.branch(thread, at=at, from_entry=entry, expected_revision=record.revision)
    return [f"{thread}: {with_count(len(moved.messages), 'message')}"]


async def delete(store: SqlStore, thread: str, user: str | None) -> Sequence[str]:
    """Delete a thread."""
    await _thread(store, thread, user)
    await store.delete_thread(thread, user)
    return []


async def export(store: SqlStore, thread: str, user: str | None) -> Sequence[str]:
    """A thread as JSON lines."""
    await store.recover()
    from llm_do.threads.managers.transfer import export_thread

    return await export_thread(store, await _thread(store, thread, user))


async def import_thread(
    store: SqlStore, text: str, user: str | None, *, name: str | None, source: str
) -> Sequence[str]:
    """Store an exported thread."""
    from llm_do.threads.managers.transfer import import_lines

    record = await import_lines(store, text.split("\n"), user, name=name, source=source)
    return [f"{record.id}: {with_count(record.length, 'message')}"]


def read_export(file: str) -> str:
    """The text that `export` wrote; `-` is stdin."""
    try:
        data = (
            stdin.read_bytes(lambda _: warn("waiting for a thread on stdin"))
            if file == "-"
            else Path(file).read_bytes()
        )
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"{file} can't be read: {error.strerror or error}", hint="Name what `llm-do threads export` wrote, or -."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file} is not UTF-8, at byte {error.start}", hint="Name what `llm-do threads export` wrote."
        ) from error


def _message_lines(message: Any) -> list[str]:
    lines: list[str] = []
    for part in message.parts:
        kind = part.part_kind
        if kind == "tool-call":
            lines.append(f"assistant calls {part.tool_name}({_short(part.args_as_json_str())})")
        elif kind == "tool-return":
            lines.append(f"{part.tool_name} ({part.outcome}): {_short(part.model_response_str())}")
        elif kind in _SPEAKERS:
            lines.append(f"{_SPEAKERS[kind]}: {_short(part.content)}")
        else:
            lines.append(kind)
    return [sanitize(line) for line in lines]


def _short(value: object, limit: int = 300) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return truncate_end(text, limit)


def _data(record: ThreadRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "user_id": record.user_id,
        "messages": record.length,
        "config": config_data(record.config),
        "branches": list(record.branches),
        "created": record.created,
        "updated": record.updated,
    }


async def _thread(store: SqlStore, thread: str, user: str | None) -> ThreadRecord:
    record = await store.thread(thread, user)
    if record is None:
        whose = f" of user {user!r}" if user is not None else ""
        raise UsageError(
            f"there is no thread {thread!r}{whose}", hint="See `llm-do threads list`, with --user or --all."
        )
    return record


async def _entry(store: SqlStore, record: ThreadRecord, prefix: str) -> str:
    """The message of a thread, or of a branch of it, with an id, or the one whose id begins with it."""
    known: dict[str, None] = {}
    for tip in (record.head, *record.branches):
        known |= dict.fromkeys(each.id for each in await store.history(tip))
    found = [id for id in known if prefix and id.startswith(prefix)]
    if prefix in known or len(found) == 1:
        return prefix if prefix in known else found[0]
    if not found:
        raise UsageError(f"thread {record.id!r} has no message {prefix!r}", hint="See `llm-do threads show`.")
    raise UsageError(several_begin_alike(f"messages of thread {record.id!r}", prefix, found), hint=WRITE_MORE)

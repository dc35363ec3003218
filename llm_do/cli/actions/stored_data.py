"""What `llm-do threads` and `llm-do runs` do with a project's store."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_do.cli.arguments.target import project_at
from llm_do.cli.arguments.thread_settings import parse_changes
from llm_do.cli.process import stdin
from llm_do.cli.process.streams import claim_stdout, warn
from llm_do.errors import UsageError
from llm_do.files.local_folder import FOLDER
from llm_do.linker.sources.project_files import project_title
from llm_do.linker.sources.project_root import locate_project
from llm_do.text.sanitizer import sanitize
from llm_do.threads.managers.pydantic_conversations import Conversations
from llm_do.threads.managers.state_manager import StateManager
from llm_do.threads.managers.transfer import export_thread, import_lines
from llm_do.threads.opened_stores import open_store
from llm_do.threads.sqlite.sqlite_store import SqliteStore
from llm_do.threads.store.records import Filter, Observation, ThreadRecord, config_data
from llm_do.ui.terminal.text_width import text_width

__all__ = [
    "branch",
    "carry_out",
    "delete",
    "export",
    "fork",
    "import_thread",
    "list_runs",
    "list_threads",
    "read_export",
    "set_config",
    "show_config",
    "show_run",
    "show_thread",
]

Work = Callable[..., Coroutine[Any, Any, Sequence[str]]]


def carry_out(project: str | None, work: Work, *args: Any, **options: Any) -> int:
    """Open a project's store, do the work, print its lines."""
    located = locate_project(project_at(project))
    root = located.root
    results = claim_stdout()
    if not (root / FOLDER / "state.db").exists() and work is not import_thread and work is not set_config:
        raise UsageError(f"nothing has been recorded in {root}", hint="Runs are recorded unless --no-record is given.")
    store = open_store(root)

    async def once() -> Sequence[str]:
        try:
            return await work(store, *args, **options)
        finally:
            await store.aclose()

    lines = asyncio.run(once())
    if work in _FOR_PROGRAMS or options.get("as_json") or options.get("events"):
        for line in lines:
            results.write(line + "\n")
    else:
        said = project_title(located) if work in (list_runs, show_run) else None
        if said is not None:
            warn(sanitize(said))
        results.write_lines(lines)
    return 0


async def list_threads(store: SqliteStore, user: str | None, *, every_user: bool, as_json: bool) -> Sequence[str]:
    """Threads, the latest first."""
    await store.recover()
    records = await store.threads(user, every_user=every_user)
    if as_json:
        return [json.dumps([_data(record) for record in records], ensure_ascii=False)]
    rows = [
        [
            record.id,
            *([record.user_id or "-"] if every_user else []),
            f"{record.length} messages",
            _when(record.updated),
        ]
        for record in records
    ]
    return _columns(rows) or ["no threads"]


async def show_thread(
    store: SqliteStore, thread: str | None, user: str | None, *, limit: int, as_json: bool
) -> Sequence[str]:
    """A thread, the one used last where none is named: its settings, its state, its latest messages."""
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
    lines = [f"thread {sanitize(record.id)}, {record.length} messages, last changed {_when(record.updated)}"]
    lines += (
        [f"settings {json.dumps(config_data(record.config), ensure_ascii=False)}"] if config_data(record.config) else []
    )
    lines += [f"state    {json.dumps(record.state, ensure_ascii=False)}"] if record.state else []
    lines += [f"toolkits {json.dumps(record.toolkits, ensure_ascii=False)}"] if record.toolkits else []
    if record.length > len(messages):
        lines.append(f"... {record.length - len(messages)} earlier messages")
    for each in messages:
        lines += [f"{each.id[:8]} {line}" for line in _told(each.message)]
    return lines


async def show_config(store: SqliteStore, thread: str, user: str | None) -> Sequence[str]:
    """A thread's settings as JSON."""
    record = await _thread(store, thread, user)
    return [json.dumps(config_data(record.config), ensure_ascii=False, indent=2)]


async def set_config(store: SqliteStore, thread: str, values: Sequence[str], user: str | None) -> Sequence[str]:
    """Change a thread's settings."""
    record = await store.thread(thread, user)
    wanted = parse_changes(values, config_data(record.config) if record is not None else {})
    if "model" in wanted:
        from llm_do.cli.arguments.named_models import check_setting

        check_setting(wanted["model"])
    config = await StateManager(store, user).set_thread_config(thread, wanted)
    return [json.dumps(config_data(config), ensure_ascii=False, indent=2)]


async def fork(store: SqliteStore, thread: str, new: str, user: str | None, *, at: int | None) -> Sequence[str]:
    """Begin a new thread that shares another one's past."""
    record = await _thread(store, thread, user)
    if await store.thread(new, user) is not None:
        raise UsageError(f"there is a thread {new!r} already", hint="Choose another id.")
    if at is not None and at > record.length:
        raise UsageError(f"thread {thread!r} has {record.length} messages, not {at}")
    forked = await Conversations(store, user).fork(thread, at=at, new_conversation_id=new)
    return [f"{new}: {len(forked.messages)} messages"]


async def branch(store: SqliteStore, thread: str, user: str | None, *, at: int | None, to: str | None) -> Sequence[str]:
    """Go on from an earlier message, or list the branches."""
    record = await _thread(store, thread, user)
    if at is not None and to is not None:
        raise UsageError("--at and --to exclude each other", hint="Keep one of them.")
    if at is None and to is None:
        lines: list[str] = []
        for tip in record.branches:
            last = await store.history(tip, limit=1)
            lines += [f"{each.id} {_when(each.time)} {' / '.join(_told(each.message))}" for each in last]
        return lines or ["no branches"]
    if at is not None and at > record.length:
        raise UsageError(f"thread {thread!r} has {record.length} messages, not {at}")
    entry = await _entry(store, record, to) if to is not None else None
    conversations = Conversations(store, user)
    moved = await conversations.branch(thread, at=at, from_entry=entry, expected_revision=record.revision)
    return [f"{thread}: {len(moved.messages)} messages"]


async def delete(store: SqliteStore, thread: str, user: str | None) -> Sequence[str]:
    """Delete a thread."""
    await _thread(store, thread, user)
    await store.delete_thread(thread, user)
    return []


async def export(store: SqliteStore, thread: str, user: str | None) -> Sequence[str]:
    """A thread as JSON lines."""
    await store.recover()
    return await export_thread(store, await _thread(store, thread, user))


async def import_thread(
    store: SqliteStore, text: str, user: str | None, *, name: str | None, source: str
) -> Sequence[str]:
    """Store a thread that was exported."""
    record = await import_lines(store, text.split("\n"), user, name=name, source=source)
    return [f"{record.id}: {record.length} messages"]


def read_export(file: str) -> str:
    """The text of what `export` wrote; `-` is stdin."""
    try:
        data = (
            stdin.read_bytes(lambda _: warn("waiting for a thread on stdin"))
            if file == "-"
            else Path(file).read_bytes()
        )
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8, at byte {error.start}") from error


async def list_runs(store: SqliteStore, thread: str | None, *, limit: int, as_json: bool) -> Sequence[str]:
    """Runs, the latest first."""
    await store.recover()
    runs = await store.runs(thread_id=thread, limit=limit)
    if as_json:
        data = [
            {
                "run_id": run.id,
                "status": run.status,
                "entry": run.entry,
                "thread_id": run.thread_id,
                "user_id": run.user_id,
                "started": run.started,
                "finished": run.finished,
            }
            for run in runs
        ]
        return [json.dumps(data, ensure_ascii=False)]
    rows = [
        [
            run.id[:12],
            run.status,
            run.entry,
            run.thread_id or "-",
            _when(run.started),
            _seconds(run.started, run.finished),
        ]
        for run in runs
    ]
    return _columns(rows) or ["no runs"]


async def show_run(store: SqliteStore, run: str | None, *, events: bool, types: Sequence[str] | None) -> Sequence[str]:
    """How a run went, the latest where none is named."""
    await store.recover()
    found = await store.run(run) if run is not None else next(iter(await store.runs(limit=1)), None)
    if found is None and run is None:
        raise UsageError("there are no runs")
    if found is None:
        raise UsageError(f"there is no run {run!r}, or more than one begins so", hint="See `llm-do runs list`.")
    seen = await store.observations(Filter(run_id=found.id, types=tuple(types) if types else None))
    if events:
        return [json.dumps(each.data, ensure_ascii=False) for each in seen]
    lines = [
        f"run {found.id}: {found.status}, {found.entry}, {_when(found.started)},"
        f" {_seconds(found.started, found.finished)}"
    ]
    widest = min(max((len(_path(each)) for each in seen), default=0), _PATH_COLUMNS)
    return lines + [_event_line(each, found.started, widest) for each in seen]


_PATH_COLUMNS = 24
"""A call path that is longer moves its line's text to the right."""

_CELL_COLUMNS = 40
"""A cell of a list that is wider moves the rest of its line to the right, and no other line's."""

_FOR_PROGRAMS = (export, show_config, set_config)
"""What prints JSON whatever the options are."""


# -- words


def _path(item: Observation) -> str:
    return sanitize(str(item.data.get("path") or ""))


def _event_line(item: Observation, start: float, widest: int) -> str:
    data = item.data
    said = {
        "run_started": lambda: f"input {_short(data.get('input'))}",
        "tool_call": lambda: f"{data.get('tool_name')} {_short(data.get('args'))}",
        "tool_result": lambda: f"{data.get('tool_name')} {data.get('status')}: {_short(data.get('result'))}",
        "approval_requested": lambda: f"asks for {data.get('tool_name')} {_short(data.get('args'))}",
        "approval_resolved": lambda: f"{data.get('tool_name')}: {data.get('decision')} by {data.get('by')}",
        "text_done": lambda: _short(data.get("text")),
        "thinking": lambda: _short(data.get("text")),
        "retry": lambda: str(data.get("error")),
        "warning": lambda: str(data.get("message")),
        "state_changed": lambda: f"{data.get('toolkit')} {_short(data.get('updates'))}",
        "handoff": lambda: f"{data.get('source')} -> {data.get('target')}: {data.get('reason')}",
        "usage": lambda: _short(data.get("usage")),
        "run_finished": lambda: f"{data.get('status')}: {_short(data.get('output'))}",
        "run_failed": lambda: f"{data.get('status')}: {_reason(data)}",
        "call_started": lambda: "",
        "call_finished": lambda: str(data.get("status")),
    }.get(item.type)
    text = said() if said is not None else _short(data)
    return f"{item.time - start:8.2f}  {item.type:18} {_path(item):<{widest}}  {sanitize(text)}".rstrip()


def _reason(data: Mapping[str, Any]) -> str:
    error: Mapping[str, Any] = data.get("error") or {}
    return str(error.get("message"))


def _told(message: Any) -> list[str]:
    lines: list[str] = []
    for part in message.parts:
        kind = part.part_kind
        if kind == "tool-call":
            lines.append(f"assistant calls {part.tool_name}({_short(part.args_as_json_str())})")
        elif kind == "tool-return":
            lines.append(f"{part.tool_name} ({part.outcome}): {_short(part.model_response_str())}")
        elif kind in ("user-prompt", "text", "system-prompt", "thinking"):
            who = {"user-prompt": "user", "text": "assistant", "system-prompt": "system", "thinking": "thinking"}[kind]
            lines.append(f"{who}: {_short(part.content)}")
        else:
            lines.append(kind)
    return [sanitize(line) for line in lines]


def _short(value: object, limit: int = 300) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _seconds(started: float, finished: float | None) -> str:
    return f"{finished - started:.1f} s" if finished is not None else "-"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[sanitize(cell) for cell in row] for row in rows]
    sizes = [[text_width(cell) for cell in row] for row in shown]
    widest = [min(max(column), _CELL_COLUMNS) for column in zip(*sizes, strict=True)]
    return [
        "  ".join(cell + " " * (most - size) for cell, size, most in zip(row, taken, widest, strict=True)).rstrip()
        for row, taken in zip(shown, sizes, strict=True)
    ]


# -- finding things


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


async def _thread(store: SqliteStore, thread: str, user: str | None) -> ThreadRecord:
    record = await store.thread(thread, user)
    if record is None:
        whose = f" of user {user!r}" if user is not None else ""
        raise UsageError(
            f"there is no thread {thread!r}{whose}", hint="See `llm-do threads list`, with --user or --all."
        )
    return record


async def _entry(store: SqliteStore, record: ThreadRecord, prefix: str) -> str:
    for tip in (record.head, *record.branches):
        for each in await store.history(tip):
            if each.id.startswith(prefix):
                return each.id
    raise UsageError(f"thread {record.id!r} has no message {prefix!r}", hint="See `llm-do threads show`.")

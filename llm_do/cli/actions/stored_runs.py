"""What `llm-do runs` does with the runs of a project's store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_do.cli.actions.project_store import align_columns, local_time, print_from_store
from llm_do.errors import UsageError
from llm_do.runtime.record.events import event_from_dict
from llm_do.runtime.record.stored_records import Filter, Observation
from llm_do.text.sanitizer import sanitize
from llm_do.threads.sqlite.sqlite_store import SqliteStore
from llm_do.ui.live.event_lines import describe
from llm_do.ui.terminal.text_width import shorten_middle

__all__ = ["list_runs", "print_from_store", "show_run"]

VALUE_CHARACTERS = 300
"""Characters shown of a value in an event."""

PATH_COLUMNS = 24
"""A longer call path moves its line's text to the right."""


async def list_runs(store: SqliteStore, thread: str | None, *, limit: int, as_json: bool) -> Sequence[str]:
    """Runs, the most recent first."""
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
            local_time(run.started),
            _seconds(run.started, run.finished),
        ]
        for run in runs
    ]
    return align_columns(rows) or ["no runs"]


async def show_run(store: SqliteStore, run: str | None, *, events: bool, types: Sequence[str] | None) -> Sequence[str]:
    """How a run went, by default the most recent one."""
    await store.recover()
    found = await store.run(run) if run is not None else next(iter(await store.runs(limit=1)), None)
    if found is None and run is None:
        raise UsageError("there are no runs")
    if found is None:
        raise UsageError(f"no run has the id {run!r}, or several ids begin with it", hint="See `llm-do runs list`.")
    recorded = await store.observations(Filter(run_id=found.id, types=tuple(types) if types else None))
    if events:
        return [json.dumps(each.data, ensure_ascii=False) for each in recorded]
    lines = [
        f"run {found.id}: {found.status}, {found.entry}, {local_time(found.started)},"
        f" {_seconds(found.started, found.finished)}"
    ]
    width = min(max((len(_path(each)) for each in recorded), default=0), PATH_COLUMNS)
    return lines + [_event_line(each, found.started, width) for each in recorded]


def _path(item: Observation) -> str:
    return sanitize(str(item.data.get("path") or ""))


def _event_line(item: Observation, start: float, width: int) -> str:
    event = event_from_dict(item.data)
    # An event that another version recorded may be one that this version can't read.
    text = describe(event, VALUE_CHARACTERS) if event is not None else shorten_middle(item.data, VALUE_CHARACTERS)
    return f"{item.time - start:8.2f}  {sanitize(item.type):18} {_path(item):<{width}}  {text}".rstrip()


def _seconds(started: float, finished: float | None) -> str:
    return f"{finished - started:.1f} s" if finished is not None else "-"

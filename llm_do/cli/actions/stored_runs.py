"""What `llm-do runs` does with the runs of a project's store."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Literal

from llm_do.cli.actions.project_store import align_columns, local_time, print_from_store
from llm_do.errors import UsageError
from llm_do.runtime.record.events import event_from_dict
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord
from llm_do.text.sanitizer import sanitize
from llm_do.threads.sqlite.sqlite_store import SqliteStore
from llm_do.ui.live.event_lines import describe, usage_text
from llm_do.ui.live.run_tree import RunTree
from llm_do.ui.terminal.screen import draws_lines
from llm_do.ui.terminal.text_width import shorten_middle

__all__ = ["Form", "list_runs", "print_from_store", "show_run"]

Form = Literal["text", "json", "events"]

VALUE_CHARACTERS = 300
"""Characters shown of a value in an event."""

COLUMNS = 120
"""The width of a tree that isn't on a terminal."""

PATH_COLUMNS = 24
"""A longer call path moves its line's text to the right."""


async def list_runs(store: SqliteStore, thread: str | None, *, limit: int, as_json: bool) -> Sequence[str]:
    """Runs, the most recent first."""
    await store.recover()
    runs = await store.runs(thread_id=thread, limit=limit)
    if as_json:
        data = [_run_data(run) for run in runs]
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


def _run_data(run: RunRecord) -> dict[str, object]:
    return {
        "run_id": run.id,
        "status": run.status,
        "entry": run.entry,
        "thread_id": run.thread_id,
        "user_id": run.user_id,
        "started": run.started,
        "finished": run.finished,
    }


async def show_run(
    store: SqliteStore, run: str | None, *, form: Form, types: Sequence[str] | None, columns: int | None, color: bool
) -> Sequence[str]:
    """How a run went, by default the most recent one: as a tree of calls, or the events of some types as a list."""
    await store.recover()
    found = await store.run(run) if run is not None else next(iter(await store.runs(limit=1)), None)
    if found is None and run is None:
        raise UsageError("there are no runs", hint="Run the project; runs are recorded without --no-record.")
    if found is None:
        raise UsageError(f"no run has the id {run!r}, or several ids begin with it", hint="See `llm-do runs list`.")
    recorded = await store.observations(Filter(run_id=found.id, types=tuple(types) if types else None))
    if form == "events":
        return [json.dumps(each.data, ensure_ascii=False) for each in recorded]
    known = [event for event in (event_from_dict(each.data) for each in recorded) if event is not None]
    tree = RunTree(known, color=color, lines=draws_lines(os.environ))
    if form == "json":
        data = {**_run_data(found), "tokens": tree.tokens, "cost_usd": tree.cost, "calls": tree.to_data()}
        return [json.dumps(data, ensure_ascii=False, indent=2)]
    took = [_seconds(found.started, found.finished), *usage_text(tree.tokens, tree.cost)]
    head = [found.status, found.entry, local_time(found.started), *took]
    lines = [f"run {found.id}: {', '.join(map(sanitize, head))}"]
    if types:
        width = min(max((len(_path(each)) for each in recorded), default=0), PATH_COLUMNS)
        return lines + [_event_line(each, found.started, width) for each in recorded]
    lines += [f"thread {sanitize(found.thread_id)}"] if found.thread_id else []
    return [*lines, *tree.draw(columns or COLUMNS)]


def _path(item: Observation) -> str:
    return sanitize(str(item.data.get("path") or ""))


def _event_line(item: Observation, start: float, width: int) -> str:
    event = event_from_dict(item.data)
    # An event that another version recorded may be one that this version can't read.
    text = describe(event, VALUE_CHARACTERS) if event is not None else shorten_middle(item.data, VALUE_CHARACTERS)
    return f"{item.time - start:8.2f}  {sanitize(item.type):18} {_path(item):<{width}}  {text}".rstrip()


def _seconds(started: float, finished: float | None) -> str:
    return f"{finished - started:.1f} s" if finished is not None else "-"

"""How a recorded run went, as `llm-do runs show` prints it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from llm_do.cli.actions.project_store import local_time
from llm_do.cli.actions.records.stored_runs import found_run, gone_line, shown_seconds
from llm_do.cli.actions.undo.changed_lines import changed_lines
from llm_do.runtime.record.events.event import event_from_dict
from llm_do.runtime.record.store.stored_questions import as_question
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord
from llm_do.text.sanitizer import sanitize
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.ui.approval.changed_files import changed_files
from llm_do.ui.live.event_lines import describe, usage_text
from llm_do.ui.live.run_tree import RunTree
from llm_do.ui.reports.open_questions import question_rows
from llm_do.ui.terminal.screen import draws_lines
from llm_do.ui.terminal.text_width import pad, shorten_middle, text_width

__all__ = ["Form", "run_line", "show_run"]

Form = Literal["text", "json", "events"]

VALUE_CHARACTERS = 300
"""Characters shown of a value in an event."""

COLUMNS = 120
"""The width of a tree that isn't on a terminal."""

PATH_COLUMNS = 24
"""A longer call path moves its line's text to the right."""


async def show_run(
    store: SqlStore,
    root: Path,
    run: str | None,
    *,
    form: Form,
    types: Sequence[str] | None,
    columns: int | None,
    color: bool,
) -> Sequence[str]:
    """How a run went, by default the most recent one: as a tree of calls, or the events of some types as a list."""
    found = await found_run(store, run)
    recorded = await store.observations(Filter(run_id=found.id, types=tuple(types) if types else None))
    if form == "events":
        return [json.dumps(each.data, ensure_ascii=False) for each in recorded]
    known = [event for event in (event_from_dict(each.data) for each in recorded) if event is not None]
    tree = RunTree(known, color=color, lines=draws_lines(os.environ))
    questions = [as_question(row) for row in await store.questions(found.id)] if found.attempt else []
    if form == "json":
        data = {**found.to_dict(), "tokens": tree.tokens, "cost_usd": tree.cost, "calls": tree.to_data()}
        data["questions"] = [each.to_dict() for each in questions]
        data["files"] = changed_files(root, found.id)
        return [json.dumps(data, ensure_ascii=False, indent=2)]
    lines = [run_line(found, tree.tokens, tree.cost)]
    if types:
        width = min(max((text_width(_path(each)) for each in recorded), default=0), PATH_COLUMNS)
        return lines + [_event_line(each, found.started, width) for each in recorded]
    lines += [f"thread {sanitize(found.thread_id)}"] if found.thread_id else []
    gone = gone_line(found)
    waits = ["waits for an answer:", *(f"  {line}" for line in question_rows(questions))] if questions else []
    return [*lines, *tree.draw(columns or COLUMNS), *([gone] if gone else []), *changed_lines(root, found.id), *waits]


def _path(item: Observation) -> str:
    return sanitize(str(item.data.get("path") or ""))


def _event_line(item: Observation, start: float, width: int) -> str:
    event = event_from_dict(item.data)
    # An event that another version recorded may be one that this version can't read.
    text = describe(event, VALUE_CHARACTERS) if event is not None else shorten_middle(item.data, VALUE_CHARACTERS)
    return f"{item.time - start:8.2f}  {sanitize(item.type):18} {pad(_path(item), width)}  {text}".rstrip()


def run_line(run: RunRecord, tokens: int, cost: float | None) -> str:
    """How a run ended, in one line."""
    took = [shown_seconds(run.started, run.finished), *usage_text(tokens, cost)]
    return f"run {run.id}: {', '.join(map(sanitize, [run.status, run.entry, local_time(run.started), *took]))}"

"""What `llm-do runs` does with the runs of a project's store."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from llm_do.cli.actions.project_store import (
    align_columns,
    is_read_by_person,
    local_time,
    print_from_store,
    shown_cost,
    shown_tokens,
)
from llm_do.errors import EXIT_CODES, UsageError
from llm_do.runtime.record.events.event import event_from_dict
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.run_names import named_run
from llm_do.runtime.record.store.stored_questions import as_question
from llm_do.runtime.record.stored_records import Filter, Observation, RunFilter, RunRecord, Spending, SpendingBy
from llm_do.text.run_ids import short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import closest_match
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.ui.live.event_lines import describe, usage_text
from llm_do.ui.live.run_tree import RunTree
from llm_do.ui.reports.open_questions import question_rows
from llm_do.ui.terminal.screen import draws_lines
from llm_do.ui.terminal.text_width import shorten_middle

__all__ = [
    "Form",
    "found_run",
    "gone_line",
    "is_read_by_person",
    "known_statuses",
    "list_costs",
    "list_runs",
    "print_from_store",
    "prune_runs",
    "run_line",
    "show_run",
]

Form = Literal["text", "json", "events"]

VALUE_CHARACTERS = 300
"""Characters shown of a value in an event."""

COLUMNS = 120
"""The width of a tree that isn't on a terminal."""

PATH_COLUMNS = 24
"""A longer call path moves its line's text to the right."""


def known_statuses(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The statuses that runs are listed by; None for all.

    Raises:
        UsageError: There is no such status.
    """
    known = ("queued", "running", "stopped", *EXIT_CODES)
    for name in names or ():
        if name not in known:
            near = closest_match(name, known)
            hint = f"Did you mean `{near}`?" if near else f"It is {', '.join(known[:-1])} or {known[-1]}."
            raise UsageError(f"runs have no status {name!r}", hint=hint)
    return tuple(names) if names else None


_RUN_HEADER = ("RUN", "STATUS", "ENTRY", "MODEL", "TOKENS", "COST", "THREAD", "STARTED", "TOOK")


async def list_runs(
    store: SqlStore, filter: RunFilter, *, limit: int, as_json: bool, headed: bool = False
) -> Sequence[str]:
    """Runs, the most recent first."""
    await store.recover()
    runs = await store.runs(filter=filter, limit=limit)
    if as_json:
        data = [run.to_dict() for run in runs]
        return [json.dumps(data, ensure_ascii=False)]
    rows = [
        [
            short_run_id(run.id),
            run.status,
            run.entry,
            _models(run),
            shown_tokens(run.usage and run.usage.total_tokens),
            shown_cost(run.usage and run.usage.cost_usd),
            run.thread_id or "-",
            local_time(run.started),
            _seconds(run.started, run.finished),
        ]
        for run in runs
    ]
    return align_columns(rows, _RUN_HEADER if headed else ()) or ["no runs"]


async def drop_run(store: SqlStore, run: str) -> Sequence[str]:
    """End a durable run that waits to be resumed."""
    found = await named_run(store, run)
    await store.drop_run(found.id)
    return [f"dropped {found.id}"]


async def prune_runs(store: SqlStore, before: float, *, dry_run: bool) -> Sequence[str]:
    """Delete the record of runs that ended before a time, and say how many they were."""
    count = await store.prune_runs(before, dry_run=dry_run)
    return [f"{'would delete' if dry_run else 'deleted'} {_count(count, 'run')} that ended before {local_time(before)}"]


def _models(run: RunRecord) -> str:
    """A run's models in one cell: the first one, and how many more."""
    if not run.models:
        return "-"
    return run.models[0] if len(run.models) == 1 else f"{run.models[0]} +{len(run.models) - 1}"


def _dollars(usage: Usage, unpriced: int) -> str:
    """US dollars; some tokens may have no known price."""
    least = "at least " if unpriced and usage.cost_usd is not None else ""
    return least + shown_cost(usage.cost_usd)


async def list_costs(store: SqlStore, by: SpendingBy, filter: RunFilter, *, as_json: bool) -> Sequence[str]:
    """What runs have used, by day, agent or model, with the sum in the last line."""
    await store.recover()
    found = await store.spending(by, filter)
    if as_json:
        data = [{by: each.key, "runs": each.runs, **_spent(each), "unpriced_tokens": each.unpriced} for each in found]
        return [json.dumps(data, ensure_ascii=False)]
    rows = [[each.key, _count(each.runs, "run"), *_used(each.usage, each.unpriced)] for each in found]
    if len(found) > 1:
        unpriced = sum(each.unpriced for each in found)
        known = [each.usage.cost_usd for each in found if each.usage.cost_usd is not None]
        total = replace(sum((each.usage for each in found), Usage()), cost_usd=sum(known) if known else None)
        rows.append(["altogether", "", *_used(total, unpriced)])
    return align_columns(rows) or ["no requests"]


def _spent(spending: Spending) -> dict[str, object]:
    """What was used, as JSON data; tools aren't counted by agent or model."""
    return {name: value for name, value in spending.usage.to_dict().items() if name != "tool_calls"}


def _used(usage: Usage, unpriced: int) -> list[str]:
    return [_count(usage.requests, "request"), _count(usage.total_tokens, "token"), _dollars(usage, unpriced)]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


async def found_run(store: SqlStore, run: str | None) -> RunRecord:
    """A run by its id or a prefix of it, by default the most recent one.

    Raises:
        UsageError: There is none, or there are several.
    """
    await store.recover()
    if run is not None:
        return await named_run(store, run)
    for latest in await store.runs(limit=1):
        return latest
    raise UsageError("there are no runs", hint="Run the project; runs are recorded without --no-record.")


def run_line(run: RunRecord, tokens: int, cost: float | None) -> str:
    """How a run ended, in one line."""
    took = [_seconds(run.started, run.finished), *usage_text(tokens, cost)]
    return f"run {run.id}: {', '.join(map(sanitize, [run.status, run.entry, local_time(run.started), *took]))}"


def gone_line(run: RunRecord) -> str:
    """Why the requests of a run aren't kept; empty if they are."""
    count = _count(run.exchanges, "request")
    if run.dropped == "max_mb":
        return f"its {count} were dropped: all runs' together took more room than `runtime.record.max_mb` allows"
    if run.dropped:
        return f"its {count} were dropped: they were older than `runtime.record.keep_days` allows"
    made = run.usage.requests if run.usage is not None and not run.exchanges else 0
    return "what models were sent is not kept, as `runtime.record.exchanges` says" if made else ""


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
    from llm_do.cli.actions.undo.changed_lines import changed_lines  # lists of runs need none
    from llm_do.ui.approval.changed_files import changed_files

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
        width = min(max((len(_path(each)) for each in recorded), default=0), PATH_COLUMNS)
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
    return f"{item.time - start:8.2f}  {sanitize(item.type):18} {_path(item):<{width}}  {text}".rstrip()


def _seconds(started: float, finished: float | None) -> str:
    return f"{finished - started:.1f} s" if finished is not None else "-"

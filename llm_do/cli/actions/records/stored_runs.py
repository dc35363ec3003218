"""What `llm-do runs` does with the runs of a project's store; one of them is shown by `shown_run`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from llm_do.cli.actions.project_store import (
    align_columns,
    is_read_by_person,
    local_time,
    print_from_store,
    shown_cost,
    shown_tokens,
    warn_of_more,
)
from llm_do.errors import EXIT_CODES, UsageError
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.run_names import named_run
from llm_do.runtime.record.stored_records import RunFilter, RunRecord, Spending, SpendingBy
from llm_do.text.generated_ids import short_run_id
from llm_do.text.words import closest_match, with_count
from llm_do.threads.sql.sql_store import SqlStore

__all__ = [
    "found_run",
    "gone_line",
    "is_read_by_person",
    "known_statuses",
    "list_costs",
    "list_runs",
    "print_from_store",
    "prune_runs",
    "shown_seconds",
]


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
    runs = await store.runs(filter=filter, limit=limit + 1)
    if len(runs) > limit:
        warn_of_more(limit, "run")
        runs = runs[:limit]
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
            shown_seconds(run.started, run.finished),
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
    return [
        f"{'would delete' if dry_run else 'deleted'} {with_count(count, 'run')} that ended before {local_time(before)}"
    ]


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
    rows = [[each.key, with_count(each.runs, "run"), *_used(each.usage, each.unpriced)] for each in found]
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
    return [with_count(usage.requests, "request"), with_count(usage.total_tokens, "token"), _dollars(usage, unpriced)]


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


def gone_line(run: RunRecord) -> str:
    """Why the requests of a run aren't kept; empty if they are."""
    count = with_count(run.exchanges, "request")
    if run.dropped == "max_mb":
        return f"its {count} were dropped: all runs' together took more room than `runtime.record.max_mb` allows"
    if run.dropped:
        return f"its {count} were dropped: they were older than `runtime.record.keep_days` allows"
    made = run.usage.requests if run.usage is not None and not run.exchanges else 0
    return "what models were sent is not kept, as `runtime.record.exchanges` says" if made else ""


def shown_seconds(started: float, finished: float | None) -> str:
    """How long a run took; nothing is known of one that hasn't begun."""
    return f"{finished - started:.1f} s" if finished is not None and started else "-"

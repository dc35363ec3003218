"""What `llm-do runs` does with the requests of recorded runs: showing them, and comparing those of two runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do.cli.actions.project_store import align_columns
from llm_do.cli.actions.records.shown_run import run_line
from llm_do.cli.actions.records.stored_runs import found_run, gone_line
from llm_do.errors import UsageError
from llm_do.runtime.record.events.event import event_from_dict
from llm_do.runtime.record.stored_records import Filter
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.threads.sql.sql_store import SqlStore

if TYPE_CHECKING:
    from llm_do.ui.live.run_comparison import ComparedRun, RunComparison

__all__ = ["compare_runs", "request_number", "show_requests"]


def request_number(text: str, form: str, types: Sequence[str] | None) -> int | None:
    """The number of the request to show; None for all.

    Raises:
        UsageError: It isn't a number, or events are asked for as well.
    """
    if form == "events" or types:
        raise UsageError("--requests shows no events", hint="Leave out --type and --format events.")
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--requests takes the number of a request, not {text!r}", hint="Leave it out to see all.")
    return int(text)


async def show_requests(
    store: SqlStore, run: str | None, *, number: int | None, as_json: bool, color: bool
) -> Sequence[str]:
    """What the models of a run were sent and what came back: what is new in each request, or all of one of them."""
    from llm_do.ui.live.sent_requests import SentRequests  # it knows messages, which are heavy to import

    found = await found_run(store, run)
    hooks = [each.data for each in await store.observations(Filter(run_id=found.id, types=("hook",)))]
    requests = SentRequests(await store.exchanges(found.id), hooks, color=color)
    if not len(requests):
        why = gone_line(found) or "it made none"
        raise UsageError(f"no requests of run {short_run_id(found.id)} are kept: {why}", hint="See `runtime.record`.")
    if number is not None and number > len(requests):
        raise UsageError(
            f"run {short_run_id(found.id)} has no request {number}", hint=f"Its requests are 1 to {len(requests)}."
        )
    if as_json:
        data = requests.to_data() if number is None else requests.data_of(number)
        return [json.dumps(data, ensure_ascii=False, indent=2)]
    usage = found.usage
    head = run_line(found, usage.total_tokens if usage else 0, usage.cost_usd if usage else None)
    return [head, "", *(requests.lines() if number is None else requests.lines_of(number))]


async def compare_runs(store: SqlStore, first: str | None, second: str | None, *, as_json: bool) -> Sequence[str]:
    """Where two runs diverge, and then how each ended; by default the two latest."""
    from llm_do.ui.live.run_comparison import RunComparison

    if first is None or second is None:
        latest = [run.id for run in await store.runs(limit=2)]
        given = (await found_run(store, first)).id if first is not None else None
        others = [id for id in latest if id != given]
        if len(others) < (2 if given is None else 1):
            raise UsageError("there is no other run to compare with", hint="Run the project again.")
        first, second = (given, others[0]) if given is not None else (others[1], others[0])
    comparison = RunComparison(await _compared(store, first), await _compared(store, second))
    if as_json:
        return [json.dumps(comparison.to_data(), ensure_ascii=False, indent=2)]
    lines = [*_parting_lines(comparison), "", *align_columns(comparison.rows())]
    if not comparison.same_output:
        lines += ["", "output:", *(f"  {sanitize(line)}".rstrip() for line in comparison.output_diff())]
    return lines


async def _compared(store: SqlStore, run: str) -> ComparedRun:
    from llm_do.ui.live.run_comparison import ComparedRun

    found = await found_run(store, run)
    recorded = await store.observations(Filter(run_id=found.id))
    events = [event for event in (event_from_dict(each.data) for each in recorded) if event is not None]
    return ComparedRun(found, await store.exchanges(found.id), events)


def _parting_lines(comparison: RunComparison) -> list[str]:
    runs = comparison.first, comparison.second
    lost = [each for each in runs if not each.exchanges and each.usage.requests]
    if lost:
        return [
            f"where they diverge isn't known: of run {each.name}, {gone_line(each.record) or 'no request is kept'}"
            for each in lost
        ]
    parting = comparison.parting
    if parting is None:
        return ["all requests and answers are the same"]
    block = [f"  {sanitize(line)}".rstrip() for line in parting.block]
    return [f"{sanitize(parting.where)}: {sanitize(parting.what)}", *block]

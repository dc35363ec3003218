"""What `llm-do runs` does with the requests of recorded runs: showing them, and comparing those of two runs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_do.cli.actions.stored_runs import found_run, gone_line, run_line
from llm_do.errors import UsageError
from llm_do.threads.sqlite.sqlite_store import SqliteStore

__all__ = ["request_number", "show_requests"]


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
    store: SqliteStore, run: str | None, *, number: int | None, as_json: bool, color: bool
) -> Sequence[str]:
    """What the models of a run were sent and what came back: what is new in each request, or all of one of them."""
    from llm_do.ui.live.sent_requests import SentRequests  # it knows messages, which are heavy to import

    found = await found_run(store, run)
    requests = SentRequests(await store.exchanges(found.id), color=color)
    if not len(requests):
        why = gone_line(found) or "it made none"
        raise UsageError(f"no requests of run {found.id[:12]} are kept: {why}", hint="See `runtime.record`.")
    if number is not None and number > len(requests):
        raise UsageError(f"run {found.id[:12]} has no request {number}", hint=f"Its requests are 1 to {len(requests)}.")
    if as_json:
        data = requests.to_data() if number is None else requests.data_of(number)
        return [json.dumps(data, ensure_ascii=False, indent=2)]
    usage = found.usage
    head = run_line(found, usage.total_tokens if usage else 0, usage.cost_usd if usage else None)
    return [head, "", *(requests.lines() if number is None else requests.lines_of(number))]

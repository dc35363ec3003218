"""Runs that are replayed at once, with no model and no tools: what isn't the same twice can't be resumed.

The run is durable and stops just before its end; the replay is that run, resumed by a session of its own, in which
nothing may begin that hadn't ended before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from llm_do._startup.frozen import frozen
from llm_do.errors import CassetteMissError, ReplayError, RunInterruptedError, RunTimeoutError, StoreError, ToolError
from llm_do.project.faults import function_place
from llm_do.runtime.record.results import ErrorRecord, RunResult
from llm_do.runtime.steps.rehearsal import Rehearsal
from llm_do.runtime.steps.step_log import PATIENCE, replay_error
from llm_do.text.json_data import to_json_data
from llm_do.text.text_diff import text_diff

if TYPE_CHECKING:
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.runtime import Runtime
    from llm_do.runtime.session.run_options import EntryOptions

__all__ = ["Rehearsed", "rehearse"]


@frozen
class Rehearsed:
    """A run and its replay.

    Args:
        result: The run's result; as the replay has saved it, if both are the same.
        difference: What isn't the same; None if everything is, or the run ended in a way that isn't replayed.
    """

    result: RunResult
    difference: ReplayError | None = None


async def rehearse(
    runtime: Runtime,
    again: Callable[[], Runtime],
    store: ThreadStore,
    input: object,
    **options: Unpack[EntryOptions],
) -> Rehearsed:
    """Run something durably, and replay it at once.

    Args:
        runtime: The session of the run; it is durable.
        again: Creates the session of the replay.
        store: The store of both.
        input: As for `Runtime.run`.
        options: As for `Runtime.run`.

    Returns:
        What came of it. A run that was interrupted, took too long or had no answers isn't replayed.
    """
    rehearsal = runtime.shared.rehearsal = Rehearsal(patience=PATIENCE)
    started = time.monotonic()
    first = await runtime.execute(input, **options)
    if isinstance(first.error, CassetteMissError | RunInterruptedError | RunTimeoutError | StoreError):
        kept = await store.run(first.run_id)
        if kept is not None and kept.status == "stopped":  # the next turn may use its thread
            await store.drop_run(first.run_id)
        return Rehearsed(first)
    rehearsal.replays = True
    rehearsal.cancelled = any(call.status == "interrupted" for call in first.calls)
    rehearsal.patience = max(PATIENCE, time.monotonic() - started + 1)
    replaying = again()
    replaying.shared.rehearsal = rehearsal
    try:
        second = await replaying.execute_again(first.run_id, accept_changes=True, deps=options.get("deps"))
    finally:
        await replaying.aclose()
    difference = _difference(first, second, runtime)
    return Rehearsed(second if difference is None else first, difference)


def _difference(first: RunResult, second: RunResult, runtime: Runtime) -> ReplayError | None:
    """What isn't the same of a run and its replay, with the place in the project's code if that is known."""
    if isinstance(second.error, ReplayError):
        return _placed(second.error, runtime)
    if (
        isinstance(second.error, ToolError) and first.error is None
    ):  # only the end of a run finds that it can't be saved
        return None
    before, after = _end(first), _end(second)
    if before == after:
        return None
    if first.status == second.status == "completed":
        what = "its result isn't what it was before"
    else:
        what = f"it ended before with the status {first.status}, and now with {second.status}"
    error = replay_error(first.run_id, what, block="\n".join(text_diff(before, after, "run", "replay")))
    return _placed(error, runtime)


def _end(result: RunResult) -> object:
    if result.error is not None:
        return {"status": result.status, "error": ErrorRecord.of(result.error).type}
    return to_json_data(result.output)


def _placed(error: ReplayError, runtime: Runtime) -> ReplayError:
    """An error with the place of the entry function, if it has none of its own."""
    entry = runtime.project.entry
    if error.file is None and error.requests is None and entry.function is not None:
        error.file, error.line = function_place(entry.function, runtime.project.root)
    return error

"""`map_inputs`: what `Runtime.map` does."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from llm_do.durable.batch_run import BatchRun, ResultForm
from llm_do.durable.batch_start import BatchOptions, start_batch
from llm_do.durable.input_runs import UNENDED
from llm_do.durable.json_lines import spooled
from llm_do.errors import BudgetError, RunInterruptedError, SuspendedError
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.store.stored_questions import as_question
from llm_do.runtime.session.durable_attempts import suspended_error
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import result_from_text
from llm_do.text.generated_ids import new_id

if TYPE_CHECKING:
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.batches import BatchItem
    from llm_do.runtime.session.mapped_inputs import BatchBudget

__all__ = ["map_inputs"]


async def map_inputs(
    session: Session,
    inputs: Iterable[object] | AsyncIterable[object],
    *,
    entry: str | None = None,
    concurrency: int | None = None,
    budget: BatchBudget | None = None,
    batch: str | None = None,
    retry: bool = False,
    accept_changes: bool = False,
    deps: object = None,
) -> AsyncIterator[RunResult]:
    """Run an entry on many inputs, and yield the results in order; `Runtime.map` describes it."""
    options = BatchOptions(batch or new_id(), entry, concurrency, budget, retry, accept_changes)
    async with spooled(inputs) as source:
        store = session.shared.recorder().batches()
        record = await start_batch(session, store, options, source.scan(), source.name)
        form = ResultForm(lambda _, result: result, _reader(), has_waiting=True)
        work = BatchRun(session, store, record, source, form, accept_changes=accept_changes, deps=deps)
        async for _, result in work.results():
            asks = result.status == "suspended" and not result.questions
            yield await _with_questions(session, result) if asks else result
    progress = work.progress
    if progress.reason == "stopped":
        raise RunInterruptedError(
            f"batch {record.id} was interrupted", hint="Map the same inputs as the same batch to continue it."
        )
    if progress.reason == "budget":
        left = progress.total - progress.done - progress.waiting
        raise BudgetError(
            f"the budget of {record.budget:g} US dollars for batch {record.id} lets none of {left:,} inputs start",
            hint="Map the same inputs as the same batch with a larger budget.",
        )


async def _with_questions(session: Session, result: RunResult) -> RunResult:
    """What an input waits for that an earlier process has begun: its questions are in the store."""
    rows = await session.shared.recorder().store().questions(result.run_id)
    if not rows:  # answered meanwhile
        return result
    error = suspended_error(result.run_id, rows)
    return RunResult(
        status="suspended", output=None, run_id=result.run_id, error=error, questions=[as_question(row) for row in rows]
    )


def _reader() -> Callable[[BatchItem], RunResult | None]:
    """Create the function that reads the result of an input from the store."""
    seal = Seal(redactor().secrets)

    def read(item: BatchItem) -> RunResult | None:
        if item.result is not None and item.status not in UNENDED:
            return result_from_text(seal.open(item.result))
        if item.status != "suspended":
            return None
        hint = f"See what it waits for with `llm-do approvals pending --run {item.run_id}`."
        error = SuspendedError(f"run {item.run_id} waits for a person", hint=hint)
        return RunResult(status="suspended", output=None, run_id=item.run_id, error=error)

    return read

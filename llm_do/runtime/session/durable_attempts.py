"""Attempts at a durable run: how one begins, and how it is suspended until a person has answered."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import SuspendedError
from llm_do.runtime.context.emission import end_run
from llm_do.runtime.record.events.run_events import RunResumedEvent
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import WarningRecord
from llm_do.runtime.record.store.stored_questions import QuestionRow, as_question
from llm_do.runtime.request.request_step import count_unfinished_requests
from llm_do.runtime.steps.activity import Activity
from llm_do.runtime.steps.durable_run import DurableRun
from llm_do.runtime.steps.run_questions import RunQuestions
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.step_log import StepLog
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llm_do.project.project import RecordSettings
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.context.run_state import RunState
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.recording import Recording
    from llm_do.runtime.record.store.store_writes import ProjectRow
    from llm_do.runtime.steps.durable_run import InFlightAnswers

__all__ = ["begin_attempt", "open_attempt", "suspend", "suspended_error"]


async def open_attempt(
    session: Session,
    run: RunState,
    entry: str,
    settings: RecordSettings,
    beginning: str | None,
    project: ProjectRow | None,
) -> Recording:
    """Begin a durable run, or another attempt at one if `beginning` is None."""
    recorder = session.shared.recorder()
    seal = Seal(redactor().secrets)
    if beginning is not None:
        recording, resumed = await recorder.begin(run, entry, settings, beginning, project), None
    else:
        recording, resumed = await recorder.resume(run, settings)
    assert recording is not None
    log = StepLog(
        run.run_id,
        () if resumed is None else resumed.steps,
        recording.add_step,
        partial(recording.flush, required=True),
        seal.close,
        seal.open,
        session.shared.rehearsal,
    )
    activity = Activity()
    asked = () if resumed is None else resumed.questions
    questions = RunQuestions(run.run_id, asked, recording, seal, activity)
    attempt = 1 if resumed is None else resumed.run.attempt
    run.durable = durable = DurableRun(attempt, log, questions, activity, {} if resumed is None else resumed.emitted)
    durable.begin_states(to_json_data(run.thread.state), to_json_data(run.user.state))
    if resumed is not None:
        run.continue_after(resumed.next_seq, resumed.stopped)
        run.warnings.extend(WarningRecord(message, path) for message, path in resumed.warnings)
    return recording


def begin_attempt(ctx: CallContext, durable: DurableRun, in_flight: InFlightAnswers) -> None:
    """Emit that a run continues, and prepare for what it asks."""
    run, notice = ctx.run, ctx.runtime.config.notice
    durable.in_flight = in_flight if durable.log.rehearsal is None else "fail"  # a rehearsal's calls were cancelled
    durable.questions.end = partial(end_run, ctx)
    durable.questions.sign = lambda: run.seq
    durable.questions.notice = lambda row: notice(_answered_elsewhere(durable, row))
    if durable.attempt == 1:
        return
    assert run.recording is not None
    run.recording.add_event(
        run.make_event(RunResumedEvent, ctx.frame.config, attempt=durable.attempt, steps=durable.log.done)
    )
    count_unfinished_requests(ctx)


def suspend(run: RunState, task: asyncio.Task[Any]) -> None:
    """End an attempt whose run waits for a person and does nothing else."""
    assert run.durable is not None
    run.durable.stop()
    run.durable.log.close()
    run.end_signal = RunEndSignal(suspended_error(run.run_id, ()))
    task.cancel()


def suspended_error(run_id: str, rows: Sequence[QuestionRow]) -> SuspendedError:
    """The error of a run that waits for these answers."""
    questions = [as_question(row) for row in rows]
    needed = "1 answer is" if len(questions) == 1 else f"{len(questions)} answers are"
    shown = ", ".join(f"{each.agent_path}: {each.call}" for each in questions)
    return SuspendedError(
        f"{needed} needed; nothing is running now{f': {shown}' if shown else ''}",
        hint=f"See `llm-do approvals pending --run {run_id}`, answer, then continue with `llm-do resume {run_id}`.",
        questions=questions,
    )


def _answered_elsewhere(durable: DurableRun, row: QuestionRow) -> str:
    answer = durable.questions.answer(row) or {}
    text = answer.get("text") or {"once": "allow"}.get(answer["answer"], answer["answer"])
    return f"{as_question(row).call} was answered elsewhere: {text}, by {row.by}"

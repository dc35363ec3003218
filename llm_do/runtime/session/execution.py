"""One run, from opening its record to its last event. However it ends, it has a result.

`Runtime.execute` chooses the entry; how calls are made is `llm_do.runtime.call.invocation`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.concurrency.event_loops import cancel_and_wait, complete
from llm_do.concurrency.large_values import json_data
from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import (
    ReplayError,
    RunError,
    RunInterruptedError,
    RunTimeoutError,
    StoreError,
    SuspendedError,
    ThreadConflict,
    ToolError,
    UsageError,
)
from llm_do.project.faults import locate
from llm_do.runtime.call.call_scope import status_of, warn_of_left_calls
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.call_frame import CallConfig, CallFrame, Turn
from llm_do.runtime.context.emission import emit
from llm_do.runtime.context.run_state import RunState
from llm_do.runtime.context.session import recording_setting
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import RetryEvent
from llm_do.runtime.record.events.run_events import RunFailedEvent, RunFinishedEvent, RunStartedEvent
from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import ExecutionContext, RunResult
from llm_do.runtime.record.store.stored_questions import as_question
from llm_do.runtime.session.durable_attempts import begin_attempt, open_attempt, suspend, suspended_error
from llm_do.runtime.session.entries import AgentEntry, ConversationEntry, Entry, NamedEntry, entry_error, entry_for
from llm_do.runtime.session.kept_changes import keeping_changes
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import is_large_result, result_text
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage

    from llm_do.machines.machine import ToolkitState
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.store_writes import ProjectRow
    from llm_do.runtime.record.store.stored_questions import QuestionRow
    from llm_do.runtime.steps.durable_run import InFlightAnswers

__all__ = ["Durability", "Execution", "RunInputs"]

CONFLICT_RETRIES = 10
"""How often a run starts over after another run has continued its thread."""


@frozen
class RunInputs:
    """The arguments that a run was started with.

    Args:
        entry: The entry, or its name.
        history: The conversation it continues, if that isn't the thread's.
        toolkits: The states of the conversation's toolkits.
        durable: How the run is made durable; None if it isn't.
    """

    entry: str | Entry | None
    history: list[ModelMessage] | None
    toolkits: Mapping[str, ToolkitState]
    durable: Durability | None = None


@frozen
class Durability:
    """How a run is made durable.

    Args:
        beginning: What it begins with, as text without its secrets; None for a run that is resumed.
        project: The project's files that it begins with; None if they can't be kept.
        in_flight: What becomes of the calls that were running when it stopped.
    """

    beginning: str | None = None
    project: ProjectRow | None = None
    in_flight: InFlightAnswers = None


@frozen
class RunOutcome:
    """How the entry of a run ended: its output, or the exception that ended it."""

    output: Any = None
    error: BaseException | None = None


class Execution:
    """Performs one run.

    Args:
        session: The session.
        run: The run's shared state.
        inputs: The arguments it was started with.
    """

    def __init__(self, session: Session, run: RunState, inputs: RunInputs) -> None:
        self.session = session
        self.run = run
        self.inputs = inputs
        self._turn = Turn(toolkits=dict(inputs.toolkits))

    async def carry_out(self, entry: Entry, value: BaseModel) -> RunResult:
        """Run the entry; start over if another run has continued the thread before anything with effects has run."""
        run = self.run
        fault: StoreError | None = None
        try:
            entry = await self._open(entry)
        except StoreError as error:
            fault = error
            if run.durable is not None:
                run.durable.stop()
        else:
            run.say_durable()
        if isinstance(entry, ConversationEntry):
            self._turn.active = entry.active
        path = "" if isinstance(entry, AgentEntry | NamedEntry) else entry.name
        config = CallConfig(entry.name, path, 0, run.unique_call_id(run.run_id), None)
        ctx = CallContext(self.session, run, CallFrame(config, value, self._turn))
        emit(ctx, RunStartedEvent, entry=entry.name, input=await json_data(value))
        if run.durable is not None and fault is None and self.inputs.durable is not None:
            begin_attempt(ctx, run.durable, self.inputs.durable.in_flight)
        attempt = 0
        while fault is None:
            outcome = await self._attempt(ctx, entry, value)
            try:
                return await self._close(ctx, entry, outcome)
            except ThreadConflict as clash:
                attempt += 1
                final = run.durable is not None or _has_effects(run, entry) or outcome.error is not None
                if final or attempt > CONFLICT_RETRIES:
                    return await self._close(ctx, entry, RunOutcome(error=clash))
                delay = random.random() * 0.05 * attempt
                emit(ctx, RetryEvent, attempt=attempt, delay=round(delay, 3), error=clash.message)
            try:
                await asyncio.sleep(delay)
                entry = await self._open(entry)
            except StoreError as error:
                fault = error
            except asyncio.CancelledError as cancelled:
                await self._close(ctx, entry, RunOutcome(error=cancelled))
                raise
        return await self._close(ctx, entry, RunOutcome(error=fault))

    async def _open(self, entry: Entry) -> Entry:
        """Open the run's record if it has one, and return the entry with the thread's conversation."""
        session, run, inputs = self.session, self.run, self.inputs
        keeps = run.thread_id is not None or run.user_id is not None
        project = session.project
        record = recording_setting(session)
        if record is False and run.thread_id is not None:
            raise UsageError(
                "a thread can't be kept if nothing is recorded",
                hint="Leave out "
                f"{option_name('--no-record', 'record=False')} or `record: false`, or set `threads.store` to `memory`.",
            )
        if inputs.durable is not None:
            if record is False or (session.config.store is None and project.threads.store == "memory"):
                raise UsageError(
                    "a durable run is kept on disk, and nothing is recorded here",
                    hint="Leave out "
                    f"{option_name('--no-record', 'record=False')}, `record: false` and `threads.store: memory`.",
                )
        elif record is False or not (record or keeps):
            return entry
        settings = session.config.settings.record_settings
        if not project.record:  # its threads are in memory, and nothing else is kept
            settings = replace(settings, exchanges=False)
        if inputs.durable is not None:
            recording = await open_attempt(
                session, run, entry.name, settings, inputs.durable.beginning, inputs.durable.project
            )
        else:
            recording = await session.shared.recorder().begin(run, entry.name, settings)
        run.recording = recording
        if recording is None or not isinstance(entry, ConversationEntry) or inputs.history is not None:
            return entry
        self._turn.toolkits = toolkit_states(recording.toolkits)
        return entry_for(project, session.registry, inputs.entry, list(recording.history), recording.active)

    async def _attempt(self, ctx: CallContext, entry: Entry, value: BaseModel) -> RunOutcome:
        """Run the entry in a task of its own, so that `interrupt` can be distinguished from an outer cancellation."""
        work = self._timed(ctx, entry, value)
        task = asyncio.ensure_future(self.run.tasks.outlast(work, partial(warn_of_left_calls, ctx)))
        if self.run.durable is not None:
            self.run.durable.questions.suspend = partial(suspend, self.run, task)
            self.run.durable.leave = partial(self._interrupt, task)
        mark = (asyncio.get_running_loop(), partial(self._interrupt, task))
        self.session.running.add(mark)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            self._stop()
            try:
                await cancel_and_wait(task)
            finally:
                try:
                    await self._close(ctx, entry, RunOutcome(error=cancelled))
                except ThreadConflict as clash:
                    await self._close(ctx, entry, RunOutcome(error=clash))
            raise
        finally:
            self.session.running.discard(mark)
        try:
            output = task.result()
            self.run.raise_if_ended()
        except RunEndSignal as end:
            if isinstance(end.error, ReplayError):
                locate(end.error, end, self.session.project.root)
            return RunOutcome(error=end.error)
        except asyncio.CancelledError as cancelled:
            if self.run.end_signal is not None and isinstance(self.run.end_signal.error, SuspendedError):
                return RunOutcome(error=self.run.end_signal.error)
            if not task.cancelling():
                return RunOutcome(error=entry_error(entry.name, cancelled, ctx))
            interrupted = RunInterruptedError("the run was interrupted", agent_path=ctx.path)
            interrupted.__cause__ = cancelled
            return RunOutcome(error=interrupted)
        except BaseException as raised:  # noqa: BLE001 (however a run ends, it has a result)
            return RunOutcome(error=raised if self.run.end_signal is None else self.run.end_signal.error)
        return RunOutcome(output)

    def _interrupt(self, task: asyncio.Task[Any]) -> None:
        """End the run as a signal does."""
        self._stop()
        task.cancel()

    def _stop(self) -> None:
        """Let a durable run stop without an end, so that it can be resumed."""
        if self.run.durable is not None:
            self.run.durable.stop()

    async def _timed(self, ctx: CallContext, entry: Entry, value: BaseModel) -> Any:
        limit = self.session.config.settings.run_timeout
        timer = asyncio.timeout(limit)
        try:
            with keeping_changes(self.session, ctx):
                async with timer:
                    return await entry.run(value, ctx)
        except BaseException as error:
            reraise_if_cancelled(error)
            if not isinstance(error, TimeoutError) or not timer.expired():
                raise
            raise RunTimeoutError(
                f"the run took longer than {limit:g} s",
                hint=f"Raise `runtime.run_timeout` or {option_name('--timeout', 'run_timeout=')}.",
            ) from error

    async def _close(self, ctx: CallContext, entry: Entry, outcome: RunOutcome) -> RunResult:
        """Build the result, save it and emit the last event, in this order, so that events show what was saved."""
        run, error = ctx.run, outcome.error
        if run.durable is not None and (stopped := await self._stopped(ctx, entry, outcome)) is not None:
            return stopped
        result, event = self._result(ctx, entry, outcome)
        if run.recording is not None:
            try:
                saving = self._save_end(ctx, entry, result, event)
                # What a durable run has come to may be written in a worker thread first, which isn't cut short either.
                await (complete(saving) if run.durable is not None else saving)
            except ThreadConflict:
                run.seq = event.seq
                raise
            except asyncio.CancelledError:  # it has been saved nevertheless
                self._announce(result, event)
                raise
            except (StoreError, ToolError) as fault:
                run.seq = event.seq
                if error is None and isinstance(fault, ToolError):  # a state isn't JSON: nothing is saved yet
                    return await self._close(ctx, entry, RunOutcome(error=fault))
                run.recording = None
                if error is None:
                    result, event = self._result(ctx, entry, RunOutcome(error=fault))
                else:
                    run.record_error(fault, ctx.path)
                    run.seq += 1
        self._announce(result, event)
        if run.recording is not None and result.status != "interrupted":  # someone waits for its end
            await run.recording.clean_up()
        return result

    async def _save_end(self, ctx: CallContext, entry: Entry, result: RunResult, event: Event) -> None:
        """Save how the run has ended; that of a durable run with its result."""
        run, turn = self.run, ctx.frame.turn
        assert run.recording is not None
        converses = isinstance(entry, ConversationEntry)
        await run.recording.finish(
            event,
            run.conversation if converses else (),
            toolkits=turn.toolkits,
            active=turn.active if converses else None,
            effects=_has_effects(run, entry) or result.error is not None,
            result=await _kept_result(result) if run.durable is not None else None,
        )

    async def _stopped(self, ctx: CallContext, entry: Entry, outcome: RunOutcome) -> RunResult | None:
        """The result of an attempt at a durable run that stops without an end; None if the run has ended."""
        run, durable = ctx.run, ctx.run.durable
        assert durable is not None
        if durable.log.rehearsal is not None and durable.attempt == 1:
            durable.stop()
        if not durable.stopping:
            if not durable.log.replays:
                return None
            # It has ended before everything was replayed, so this isn't how it ended before.
            durable.stop()
            if outcome.error is None:
                outcome = RunOutcome(error=durable.log.unreached())
        questions: Sequence[QuestionRow] = ()
        if run.recording is not None:
            waits = isinstance(outcome.error, SuspendedError)
            try:
                await run.recording.stop("suspended" if waits else "stopped")
                questions = await run.recording.questions()
            except StoreError as fault:
                if waits:
                    outcome = RunOutcome(error=fault)
                elif not isinstance(outcome.error, StoreError):
                    run.record_error(fault, ctx.path)
            else:
                outcome = RunOutcome(error=suspended_error(run.run_id, questions)) if waits else outcome
        result, _ = self._result(ctx, entry, outcome)
        result.questions.extend(map(as_question, questions))
        self.session.shared.count(result.usage)
        return result

    def _announce(self, result: RunResult, event: Event) -> None:
        """Emit a run's last event, after its end is final."""
        self.run.deliver(event)
        self.run.over = True
        self.session.shared.count(result.usage)

    def _result(self, ctx: CallContext, entry: Entry, outcome: RunOutcome) -> tuple[RunResult, Event]:
        """Build the result of a run and its last event, without emitting the event."""
        run, config, error = ctx.run, ctx.frame.config, outcome.error
        status = status_of(error)
        if run.unattended and status in ("completed", "limited"):
            status = "denied"
        failure = run.record_error(error, ctx.path) if error is not None else None
        turn = ctx.frame.turn if isinstance(entry, ConversationEntry) else Turn(toolkits=ctx.frame.turn.toolkits)
        messages = list(turn.messages)
        if isinstance(error, RunError):
            error.messages = messages
        result = RunResult(
            status=status,
            output=outcome.output if error is None else (ctx.frame.text or None),
            run_id=run.run_id,
            thread_id=run.thread_id,
            messages=messages,
            calls=run.calls,
            usage=run.budget.used,
            steps=run.steps,
            errors=run.errors,
            denials=run.denials,
            approvals=run.approvals,
            warnings=run.warnings,
            execution_context=ExecutionContext(tuple(messages), turn.active, dict(turn.toolkits)),
            error=error,
        )
        if failure is None:
            returned, data = run.returned
            data = data if returned is outcome.output else to_json_data(outcome.output)
            return result, run.make_event(RunFinishedEvent, config, status=status, output=data)
        return result, run.make_event(RunFailedEvent, config, status=status, error=failure.to_dict())


async def _kept_result(result: RunResult) -> str:
    """The text that is kept of a durable run's result; a worker thread makes that of a large one."""

    def text() -> str:
        return Seal(redactor().secrets).close(result_text(result))

    return await run_in_worker(text) if is_large_result(result) else text()


def _has_effects(run: RunState, entry: Entry) -> bool:
    """Whether anything has run that can't simply be repeated: the project's code, or a tool."""
    return not isinstance(entry, AgentEntry) or run.budget.used.tool_calls > 0 or bool(run.calls)

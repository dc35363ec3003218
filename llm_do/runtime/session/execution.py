"""One run, from the beginning of its record to its last event. However it ends, it has a result.

`Runtime.execute` says what is run; what a call does is in `llm_do.runtime.call.dispatch`.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from llm_do._frozen import frozen
from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.errors import (
    RunError,
    RunInterruptedError,
    RunTimeoutError,
    StoreError,
    ThreadConflict,
    ToolError,
    UsageError,
)
from llm_do.runtime.call.call_scope import CallConfig, CallFrame, status_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.null_model import NULL_MODEL
from llm_do.runtime.context.run_state import RunState
from llm_do.runtime.record.emission import emit
from llm_do.runtime.record.events import Event, RetryEvent, RunFailedEvent, RunFinishedEvent, RunStartedEvent
from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.results import ErrorRecord, ExecutionContext, RunResult
from llm_do.runtime.session.entries import AgentEntry, Entry, FlowEntry, NamedEntry, entry_error, entry_for
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.runtime.runtime import Runtime

__all__ = ["Execution", "RunInputs"]

CONFLICT_RETRIES = 10
"""How often a run that lost against another one on its thread begins again."""


@frozen
class RunInputs:
    """What a run was started with: its entry, and its history where that isn't the thread's."""

    entry: str | Entry | None
    history: list[ModelMessage] | None


class Execution:
    """Carries out one run.

    Args:
        runtime: The session.
        run: The run's shared state.
        given: What it was started with.
    """

    def __init__(self, runtime: Runtime, run: RunState, given: RunInputs) -> None:
        self.runtime = runtime
        self.run = run
        self.given = given

    async def carry_out(self, entry: Entry, value: Any) -> RunResult:
        """Run the entry to its end."""
        run = self.run
        fault: StoreError | None = None
        try:
            entry = await self._open(entry)
        except StoreError as error:
            fault = error
        depth0 = CallConfig(
            name=entry.name,
            path="" if isinstance(entry, AgentEntry | NamedEntry) else entry.name,
            depth=0,
            call_id=run.unique_call_id(run.run_id),
            parent_call_id=None,
            model=NULL_MODEL,
        )
        ctx = CallContext(self.runtime, run, CallFrame(depth0, value))
        emit(ctx, RunStartedEvent, entry=entry.name, input=to_json_data(value))
        if fault is not None:
            return await self._close(ctx, entry, None, fault)
        return await self._until_kept(ctx, entry, value)

    async def _open(self, entry: Entry) -> Entry:
        """Begin the run's record where it has one; the entry then, with the thread's conversation."""
        runtime, run, given = self.runtime, self.run, self.given
        keeps = run.thread_id is not None or run.user_id is not None
        record = runtime.config.record
        project = runtime.project
        if not project.record and runtime.config.store is None and project.threads.store != "memory":
            record = False
        if record is False and run.thread_id is not None:
            raise UsageError(
                "a thread can't be kept where nothing is recorded",
                hint="Leave out --no-record or `record: false`, or set `threads.store` to `memory`.",
            )
        if record is False or not (record or keeps):
            return entry
        run.recording = recording = await runtime.shared.recorder().begin(run, entry.name)
        if recording is None or not isinstance(entry, AgentEntry | FlowEntry) or given.history is not None:
            return entry
        run.toolkits = toolkit_states(recording.toolkits)
        return entry_for(project, runtime.registry, given.entry, list(recording.history), recording.active)

    async def _until_kept(self, ctx: CallContext, entry: Entry, value: Any) -> RunResult:
        """Run the entry, again where another run has continued the thread before anything with effects has run."""
        attempt = 0
        while True:
            output, error = await self._attempt(ctx, entry, value)
            try:
                return await self._close(ctx, entry, output, error)
            except ThreadConflict as clash:
                attempt += 1
                if _has_effects(ctx.run, entry) or error is not None or attempt > CONFLICT_RETRIES:
                    return await self._close(ctx, entry, None, clash)
                delay = random.random() * 0.05 * attempt
                emit(ctx, RetryEvent, attempt=attempt, delay=round(delay, 3), error=clash.message)
                try:
                    await asyncio.sleep(delay)
                    entry = await self._open(entry)
                except (StoreError, asyncio.CancelledError) as fault:
                    result = await self._close(ctx, entry, None, fault)
                    if isinstance(fault, StoreError):
                        return result
                    raise

    async def _attempt(self, ctx: CallContext, entry: Entry, value: Any) -> tuple[Any, BaseException | None]:
        """Run the entry in a task of its own, so that `interrupt` can tell itself from an outer cancellation."""
        task = asyncio.ensure_future(self._timed(entry, value, ctx))
        mark = (asyncio.get_running_loop(), task)
        self.runtime.running.add(mark)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            try:
                await cancel_and_wait(task)
            finally:
                try:
                    await self._close(ctx, entry, None, cancelled)
                except ThreadConflict as clash:
                    await self._close(ctx, entry, None, clash)
            raise
        finally:
            self.runtime.running.discard(mark)
        try:
            output = task.result()
            self.run.raise_if_ended()
        except RunEndSignal as ends:
            return None, ends.error
        except asyncio.CancelledError as cancelled:
            if not task.cancelling():
                return None, entry_error(entry.name, cancelled, ctx)
            error = RunInterruptedError("the run was interrupted", agent_path=ctx.path)
            error.__cause__ = cancelled
            return None, error
        except BaseException as raised:  # noqa: BLE001 (however a run ends, it has a result)
            return None, raised if self.run.ends is None else self.run.ends.error
        return output, None

    async def _timed(self, entry: Entry, value: Any, ctx: CallContext) -> Any:
        limit = self.runtime.config.settings.run_timeout
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                return await entry.run(value, ctx)
        except BaseException as error:
            reraise_if_cancelled(error)
            if not isinstance(error, TimeoutError) or not timer.expired():
                raise
            raise RunTimeoutError(
                f"the run took longer than {limit:g} s", hint="Raise `runtime.run_timeout` or --timeout."
            ) from error

    async def _close(self, ctx: CallContext, entry: Entry, output: Any, error: BaseException | None) -> RunResult:
        """Make the result, save it, and tell of it: in this order, so that what is told is what is kept."""
        run = ctx.run
        result, event = self._ending(ctx, entry, output, error)
        if run.recording is not None:
            try:
                await run.recording.finish(
                    event,
                    run.conversation if isinstance(entry, AgentEntry | FlowEntry) else (),
                    toolkits=run.toolkits,
                    active=entry.active if isinstance(entry, AgentEntry | FlowEntry) else None,
                    effects=_has_effects(run, entry) or error is not None,
                )
            except ThreadConflict:
                run.seq = event.seq
                raise
            except asyncio.CancelledError:  # it is kept all the same
                self._tell(run, result, event)
                raise
            except (StoreError, ToolError) as fault:
                run.seq = event.seq
                if error is None and isinstance(fault, ToolError):  # a state is no JSON: nothing is saved yet
                    return await self._close(ctx, entry, None, fault)
                run.recording = None
                if error is None:
                    result, event = self._ending(ctx, entry, None, fault)
                else:
                    run.note_error(fault, ctx.path)
                    run.seq += 1
        self._tell(run, result, event)
        return result

    def _tell(self, run: RunState, result: RunResult, event: Event) -> None:
        """Tell of a run's end, which nothing can change any more."""
        run.deliver(event)
        self.runtime.shared.count(result.usage)

    def _ending(
        self, ctx: CallContext, entry: Entry, output: Any, error: BaseException | None
    ) -> tuple[RunResult, Event]:
        """The result of a run, and its last event, which nobody has heard yet."""
        run = ctx.run
        status = status_of(error)
        if run.nobody_to_ask and status in ("completed", "limited"):
            status = "denied"
        if error is not None:
            run.note_error(error, ctx.path)
        goes_on = isinstance(entry, AgentEntry | FlowEntry)
        messages = list(entry.messages) if goes_on else []
        if isinstance(error, RunError):
            error.messages = messages
        result = RunResult(
            status=status,
            output=output if error is None else (ctx.frame.text or None),
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
            execution_context=ExecutionContext(tuple(messages), entry.active if goes_on else None, dict(run.toolkits)),
            error=error,
        )
        config = ctx.frame.config
        if error is None:
            return result, run.make(RunFinishedEvent, config, status=status, output=to_json_data(output))
        return result, run.make(RunFailedEvent, config, status=status, error=ErrorRecord.of(error, ctx.path).to_dict())


def _has_effects(run: RunState, entry: Entry) -> bool:
    """Whether anything has run that can't simply be done again: the project's code, or a tool."""
    return not isinstance(entry, AgentEntry) or run.budget.used.tool_calls > 0 or bool(run.calls)

"""Emits a call's events, and tracks each of its tool calls from the request to its one result."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import LlmDoError, ReplayError, StoreError, SuspendedError
from llm_do.runtime.context.call_frame import OpenToolCall
from llm_do.runtime.record.events.event_base import EventBase
from llm_do.runtime.record.events.tool_events import StateChangedEvent, ToolCallEvent, ToolResultEvent
from llm_do.runtime.record.outcomes import ToolOutcome

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext

__all__ = [
    "busy",
    "emit",
    "end_run",
    "ending_run",
    "flush_record",
    "hold_if_draining",
    "live_step",
    "open_tool",
    "record_tool",
    "response_key",
    "tool_key",
    "waiting_for_person",
]


def emit(ctx: CallContext, kind: Callable[..., EventBase], **data: Any) -> None:
    """Emit an event of a call."""
    ctx.run.emit(kind, ctx.frame.config, **data)


async def flush_record(ctx: CallContext, *, required: bool) -> None:
    """Wait until what has happened so far is on disk, before something that can't be taken back follows from it.

    Args:
        ctx: The call.
        required: Whether a run that keeps nothing but its journal must be recorded, too.

    Raises:
        RunEndSignal: It can't be written, which ends the run.
    """
    recording, durable = ctx.run.recording, ctx.run.durable
    if recording is None or (durable is not None and durable.log.puts_off_writing()):
        return
    try:
        await recording.flush(required=required)
    except StoreError as error:
        raise end_run(ctx, error) from error


def end_run(ctx: CallContext, error: LlmDoError) -> RunEndSignal:
    """The signal that ends the run with an error, whatever its callers catch.

    An attempt at a durable run that can't continue stops without an end: nothing more is emitted.
    """
    error.agent_path = error.agent_path or ctx.path
    durable = ctx.run.durable
    if durable is not None and isinstance(error, StoreError | ReplayError | SuspendedError):
        durable.stop()
    ctx.run.end_signal = RunEndSignal(error)
    return ctx.run.end_signal


@contextmanager
def ending_run(ctx: CallContext) -> Generator[None]:
    """End the run, whatever its callers catch, if a step can't be read, replayed or written inside."""
    try:
        yield
    except (ReplayError, StoreError) as error:
        raise end_run(ctx, error) from error


async def live_step(ctx: CallContext, key: str, what: Callable[[], str]) -> None:
    """Wait until a step that hasn't been done before may begin; at once in a run that isn't durable.

    Args:
        ctx: The call.
        key: The step's key.
        what: Describes the step, such as `request 2 of main`.

    Raises:
        ReplayError: The run's code no longer comes to steps that were done.
    """
    if ctx.run.durable is not None:
        await ctx.run.durable.log.live(key, what)
        await hold_if_draining(ctx)


async def hold_if_draining(ctx: CallContext) -> None:
    """Begin nothing more in a durable run whose session is draining: it stops when what is running has ended."""
    if ctx.run.durable is not None and ctx.runtime.shared.draining:
        await ctx.run.durable.hold()


def busy(ctx: CallContext) -> AbstractContextManager[None]:
    """Surround what the run is doing, so that a durable one isn't suspended meanwhile."""
    durable = ctx.run.durable
    return nullcontext() if durable is None else durable.activity.busy()


def tool_key(ctx: CallContext, tool_call_id: str) -> str:
    """What tells a model's tool call from all others of a durable run, in every attempt."""
    return f"{response_key(ctx)}/{tool_call_id}"


def response_key(ctx: CallContext) -> str:
    """What tells the response that a call's model gave last from all others of a durable run."""
    return f"{ctx.call_id}/r{ctx.frame.requests}"


def open_tool(ctx: CallContext, tool_call_id: str, tool_name: str, args: object) -> None:
    """Record that a model requested a tool call, which must have a result before the call ends."""
    ctx.frame.open_calls[tool_call_id] = OpenToolCall(tool_name, time.perf_counter())
    emit(ctx, ToolCallEvent, tool_name=tool_name, tool_call_id=tool_call_id, args=args)


@contextmanager
def waiting_for_person(ctx: CallContext, tool_call_id: str) -> Generator[None]:
    """Count the time that a person takes to answer as the tool call's wait, not as its duration."""
    began = time.perf_counter()
    try:
        yield
    finally:
        opened = ctx.frame.open_calls.get(tool_call_id)
        if opened is not None:
            opened.waited += time.perf_counter() - began


def record_tool(ctx: CallContext, outcome: ToolOutcome) -> ToolOutcome:
    """Emit how a tool call ended, once, and return the outcome with its duration."""
    opened = ctx.frame.open_calls.pop(outcome.tool_call_id, None)
    if opened is None:
        return outcome
    elapsed = time.perf_counter() - opened.started
    outcome = replace(outcome, duration=round(elapsed - opened.waited, 6), waited=round(opened.waited, 6))
    for change in outcome.changes:
        states = sorted(change.state.unlocked_states)
        emit(ctx, StateChangedEvent, toolkit=change.toolkit, updates=change.updates, states=states)
    emit(ctx, ToolResultEvent, **outcome.event_data())
    return outcome

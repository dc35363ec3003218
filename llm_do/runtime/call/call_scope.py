"""`CallScope`: one call from its first event to its last, and how a nested call is opened.

A call's id and its path are made here and nowhere else, of its caller's and of the `CallSite` it is made at.
"""

from __future__ import annotations

import asyncio
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.concurrency.large_values import json_data
from llm_do.concurrency.run_end import RunEndSignal
from llm_do.errors import DepthLimitError, EntryError, InputError, LlmDoError, Status
from llm_do.project.faults import DATA_HINT, not_data_error
from llm_do.runtime.context.call_context import CURRENT_CALL, CallContext
from llm_do.runtime.context.call_frame import CallConfig
from llm_do.runtime.context.emission import emit, ending_run, record_tool
from llm_do.runtime.record.events.run_events import CallFinishedEvent, CallStartedEvent, WarningEvent
from llm_do.runtime.record.outcomes import CallOutcome, ToolOutcome, ToolOutput
from llm_do.runtime.record.results import ErrorRecord, Usage, WarningRecord
from llm_do.runtime.steps.inner_calls import current_step, note_inner_call
from llm_do.runtime.tools.approval_requirement import CURRENT_APPROVALS, CallApprovals
from llm_do.text.canonical_json import digest
from llm_do.text.exception_text import exception_text
from llm_do.text.json_data import NotDataError, check_awaited, to_json_data
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel


__all__ = ["CallScope", "CallSite", "input_data", "open_call", "status_of", "warn_of_left_calls"]


@frozen
class CallSite:
    """Where in its caller a call is made.

    Args:
        key: What distinguishes it from the caller's other calls: a tool call's id, a number, a step of a flow.
        position: Its place in a flow, such as `2/1/`; part of its path.
        label: What the caller's code tells it apart by, for people.
    """

    key: str
    position: str = ""
    label: str = ""

    @classmethod
    def in_code(cls, ctx: CallContext, name: str, value: object, label: str = "") -> CallSite:
        """A call from Python: they are numbered, and found by what they are when a durable run is resumed."""
        frame, durable = ctx.frame, ctx.run.durable
        if durable is None:
            frame.children += 1
            return cls(str(frame.children), label=str(label))
        data = to_json_data(value)
        with ending_run(ctx):
            key, frame.children = durable.log.child(
                ctx.call_id, name, data, digest(data)[:16], frame.children, current_step()
            )
        return cls(key, label=str(label))

    @classmethod
    def step(cls, position: str, name: str) -> CallSite:
        """A step of a flow.

        Example:
            >>> CallSite.step("2/1/", "writer").key
            '2.1.writer'
        """
        return cls(f"{position.replace('/', '.')}{name}", position)


def open_call(ctx: CallContext, name: str, site: CallSite) -> CallConfig:
    """What is fixed for a nested call, once it is known that it may be made: every one passes here."""
    limit = ctx.runtime.config.settings.max_depth
    parent = ctx.frame.config
    path = f"{parent.path}/{site.position}{name}" if parent.path else f"{site.position}{name}"
    if parent.depth + 1 > limit:
        raise DepthLimitError(
            f"calling {name!r} would be deeper than {with_count(limit, 'call')}",
            hint=f"Raise `runtime.max_depth` or {option_name('--max-depth')}, or end the recursion earlier.",
            agent_path=path,
        )
    # What an entry agent does is the run itself; everything below is a descendant.
    if not parent.is_root:
        ctx.run.budget.count_descendant()
    call_id = ctx.run.unique_call_id(f"{parent.call_id}.{site.key}")
    note_inner_call(call_id)
    return CallConfig(name, path, parent.depth + 1, call_id, parent.call_id, label=site.label)


def warn_of_left_calls(ctx: CallContext, count: int) -> None:
    """Warn of calls that were still running when the entry returned."""
    calls, them = ("a call was", "it was") if count == 1 else (f"{count:,} calls were", "they were")
    message = f"{calls} still running when {ctx.frame.config.name} returned; {them} cancelled: await what you begin"
    ctx.run.warnings.append(WarningRecord(message, ctx.path))
    ctx.run.emit(WarningEvent, ctx.frame.config, message=message)


class CallScope:
    """One call from its first event to its last: whatever ends it, nothing stays open.

    Inside, it is the current call. On leaving, tool calls without a result get one (`cancelled`), what was reserved of
    the budget is given back, `ctx.cancelled` is set, and the call is recorded with its history and usage. The toolsets
    of an agent live inside: PydanticAI enters them when the agent's run begins and exits them when it ends, also on
    error and cancellation.

    Args:
        ctx: The call's context.
        listed: Whether `RunResult.calls` lists the call; the entry isn't listed.
    """

    def __init__(self, ctx: CallContext, *, listed: bool = True) -> None:
        self.ctx = ctx
        self.listed = listed
        self._output: Any = None
        self._token: Token[CallContext] | None = None
        self._approvals: Token[CallApprovals | None] | None = None

    async def returns(self, output: Any, function: Callable[..., Any] | None = None) -> Any:
        """Keep what the call returns as JSON data, and return it.

        Code that calls code may pass on any object, such as a connection. What a run returns must be data, and a
        coroutine that nothing awaits is never meant.

        Args:
            output: What the call returns.
            function: The project's function that returned it.
        """
        ctx = self.ctx
        is_result = ctx.parent is None or ctx.parent.frame.config.is_root
        try:
            check_awaited(output)
            self._output = await json_data(output, strict=is_result)
        except NotDataError as error:
            raise not_data_error(ctx.frame.config.name, error, function, ctx.run.root, ctx.path) from None
        except Exception as error:
            raise EntryError(
                f"{ctx.frame.config.name} returned a {type(output).__name__} that can't be written as JSON data: "
                + exception_text(error),
                hint=DATA_HINT,
                agent_path=ctx.path,
            ) from error
        if is_result:
            ctx.run.returned = (output, self._output)
        return output

    async def __aenter__(self) -> CallScope:
        shown = await input_data(self.ctx.frame.input, self.ctx.path)
        self._token = CURRENT_CALL.set(self.ctx)
        self._approvals = CURRENT_APPROVALS.set(self.ctx.frame.approvals)
        emit(self.ctx, CallStartedEvent, input=shown, label=self.ctx.frame.config.label)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(error.error if isinstance(error, RunEndSignal) else error)
        finally:
            assert self._token is not None
            assert self._approvals is not None
            CURRENT_APPROVALS.reset(self._approvals)
            CURRENT_CALL.reset(self._token)

    def _close(self, error: BaseException | None) -> None:
        ctx, frame = self.ctx, self.ctx.frame
        frame.cancelled.set()
        if frame.held is not None:
            ctx.run.budget.settle(frame.held, Usage())
            frame.held = None
        for tool_call_id, call in list(frame.open_calls.items()):
            output = ToolOutput.of_text("the run ended first")
            record_tool(ctx, ToolOutcome(call.tool_name, tool_call_id, "cancelled", output))
        outcome = CallOutcome(
            ctx.call_id,
            ctx.path,
            status_of(error),
            self._output,
            self._record_of(error) if error is not None else None,
            frame.usage,
            frame.steps,
            frame.messages,
        )
        if self.listed:
            ctx.run.calls.append(outcome.record())
        emit(ctx, CallFinishedEvent, **outcome.event_data())

    def _record_of(self, error: BaseException) -> ErrorRecord:
        """The record of what ended the call; of a listed call it is one of the run's errors."""
        ctx, config = self.ctx, self.ctx.frame.config
        raised_by = config.name if config.agent is None and isinstance(error, Exception) else None
        if self.listed:
            return ctx.run.record_error(error, ctx.path, raised_by)
        return ErrorRecord.of(error, ctx.path, root=ctx.run.root, raised_by=raised_by)


async def input_data(value: BaseModel, path: str) -> Any:
    """An input as JSON data, for events."""
    try:
        return await json_data(value)
    except Exception as error:
        raise InputError(
            f"the input of {path} can't be written as JSON data: {exception_text(error)}",
            hint="Give text, or a mapping of JSON-like data.",
            agent_path=path,
        ) from error


def status_of(error: BaseException | None) -> Status:
    """The status that an exception stands for."""
    if error is None:
        return "completed"
    if isinstance(error, LlmDoError):
        return error.status
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "interrupted"
    return "failed"

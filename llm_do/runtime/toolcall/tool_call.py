"""One tool call, in this order everywhere: validate, gate, hooks, approve, run, transition, hooks, record.

Validation is the library's, refused calls end in `refuse`; the rest is `run_tool_call`. Whatever happens, the call
gets one result, and one event tells how it ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai import RunContext, ToolDefinition, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart

from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.errors import (
    AbortedError,
    LlmDoError,
    PermissionDeniedError,
    RunError,
    RunTimeoutError,
    ToolError,
    ToolFailedError,
    error_text,
)
from llm_do.runtime.approval.approver import approve
from llm_do.runtime.context.call_context import CURRENT_TOOL, CallContext
from llm_do.runtime.context.hooks import HookAbort, HookPoint
from llm_do.runtime.record.emission import record_tool
from llm_do.runtime.record.results import Usage
from llm_do.runtime.toolcall.gatekeeper import run_in_transaction, wait_for_gates
from llm_do.runtime.tools.approval_requirement import (
    DEFERRED_REASON,
    ApprovalRequirement,
    requirement_before_run,
    requirement_raised,
)
from llm_do.runtime.tools.gated_tools import ToolGate
from llm_do.runtime.tools.tool_output import ToolOutput, truncate_text
from llm_do.runtime.tools.traits import ToolTraits, traits_of

__all__ = ["ENDS_RUN", "refuse", "run_tool_call"]

ENDS_RUN = (RunEndSignal, AbortedError, PermissionDeniedError, ToolFailedError, RunTimeoutError)
"""What passes through a tool call and ends the whole run, however deep it was raised."""

_PLAIN = ToolTraits()


def refuse(ctx: CallContext, call: ToolCallPart, reason: str) -> ToolFailed:
    """The failed result of a call that isn't even asked about; the caller raises it."""
    told = truncate_text(reason, ctx.runtime.config.settings.max_result_bytes)
    record_tool(ctx, call.tool_call_id, call.tool_name, "refused", told)
    ctx.frame.gating.order.leave(call.tool_call_id, call.tool_name, succeeded=False)
    return ToolFailed(told)


async def run_tool_call(
    ctx: CallContext,
    call: ToolCallPart,
    tool_def: ToolDefinition,
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
    run: RunContext[Any],
) -> Any:
    """Lead one validated call through the remaining steps."""
    traits = traits_of(tool_def.metadata) or _PLAIN
    status, result, size = "cancelled", "the run ended first", None
    hooks, agent = ctx.frame.hooks, ctx.frame.config.agent
    gates = ctx.frame.gating.gates(call.tool_name, traits.gate)
    try:
        if gates and (reason := await wait_for_gates(ctx.frame.gating, call, gates)) is not None:
            raise _Refused(truncate_text(reason, ctx.runtime.config.settings.max_result_bytes))
        if hooks:
            await hooks.call(HookPoint.PRE_TOOL_CALL, agent=agent, tool_name=call.tool_name, arguments=args)
        noted = ctx.frame.wanted.pop(call.tool_call_id, None)
        await _permitted(ctx, call, traits, args, requirement_before_run(run, tool_def, traits, noted))
        if noted is not None:
            handler = noted.first(handler)
        ctx.run.budget.tool_call()
        ctx.frame.usage += Usage(tool_calls=1)
        try:
            value, said = await _run_permitted(ctx, call, traits, gates, args, handler)
        except ToolFailed as failure:
            if hooks:
                await hooks.call(
                    HookPoint.POST_TOOL_CALL, agent=agent, tool_name=call.tool_name, result=failure.message
                )
            raise
        if hooks:
            await hooks.call(HookPoint.POST_TOOL_CALL, agent=agent, tool_name=call.tool_name, result=value)
        status, result, size = "success", said.shown, said.size
        return said.told
    except _Denied as denial:
        status, result = "denied", denial.reason
        return ToolDenied(denial.reason)
    except ToolFailed as failure:
        status, result = _STATUS.get(type(failure), "failed"), failure.message
        raise
    except HookAbort as abort:
        status, result = "failed", f"a hook raised {error_text(abort.error)}"
        raise
    except LlmDoError as error:
        status, result = "failed", error.message
        raise
    finally:
        record_tool(ctx, call.tool_call_id, call.tool_name, status, result, size)
        ctx.frame.approved.discard(call.tool_call_id)
        if gates:
            ctx.frame.gating.order.leave(call.tool_call_id, call.tool_name, succeeded=status == "success")


class _Denied(Exception):  # noqa: N818 (no error: a decision)
    """A call may not be made."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class _TimedOut(ToolFailed):
    """The failed result of a call that took too long."""


class _Refused(ToolFailed):
    """The failed result of a call that its gate didn't let through."""


_STATUS: dict[type[ToolFailed], str] = {_TimedOut: "timed_out", _Refused: "refused"}


async def _permitted(
    ctx: CallContext, call: ToolCallPart, traits: ToolTraits, args: dict[str, Any], wants: ApprovalRequirement | None
) -> None:
    """See that a call may be made, and keep that somebody said yes, for the tool to know."""
    decision = await approve(ctx, call, traits, args, wants)
    if decision.effect == "deny":
        raise _Denied(decision.reason)
    if decision.approves:
        ctx.frame.approved.add(call.tool_call_id)


async def _run_permitted(
    ctx: CallContext,
    call: ToolCallPart,
    traits: ToolTraits,
    gates: Sequence[ToolGate],
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
) -> tuple[Any, ToolOutput]:
    """Run a tool that nobody denies; once more if it wants an approval that it hasn't, and gets it."""
    try:
        return await _run(ctx, call, traits, gates, args, handler)
    except ApprovalRequired as error:
        await _permitted(ctx, call, traits, args, requirement_raised(error))
        return await _run(ctx, call, traits, gates, args, handler)


async def _run(
    ctx: CallContext,
    call: ToolCallPart,
    traits: ToolTraits,
    gates: Sequence[ToolGate],
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
) -> tuple[Any, ToolOutput]:
    """Run the tool itself with its timeout, and its transition; every failure becomes one failed result.

    What passes is the `ApprovalRequired` of a call that nobody has approved yet.
    """
    settings = ctx.runtime.config.settings
    limit = traits.timeout if traits.timeout is not None else ctx.frame.config.tool_timeout
    given_up = threading.Event()
    token = CURRENT_TOOL.set(given_up)
    timer = asyncio.timeout(limit)
    try:
        async with timer:
            return await run_in_transaction(ctx, call, gates, args, handler, traits.succeeded)
    except ENDS_RUN:
        raise
    except BaseException as error:  # libraries in other languages raise more than exceptions
        reraise_if_cancelled(error)
        if isinstance(error, ApprovalRequired) and call.tool_call_id not in ctx.frame.approved:
            raise
        if isinstance(error, TimeoutError) and timer.expired():
            raise _TimedOut(f"timed out after {limit:g} s") from error
        if isinstance(error, LlmDoError) and not isinstance(error, ToolError):
            ctx.run.note_error(error, ctx.path)
        told = _told_on_purpose(error)
        text = truncate_text(_failure_text(error) if told is None else told, settings.max_result_bytes)
        if told is None and settings.on_tool_error == "raise":
            raise ToolFailedError(text, agent_path=ctx.path) from error
        raise ToolFailed(text) from error
    finally:
        given_up.set()
        CURRENT_TOOL.reset(token)


def _told_on_purpose(error: BaseException) -> str | None:
    """What a tool that fails on purpose says to the model; None for any other failure."""
    for one in (error, error.__cause__):
        if isinstance(one, ModelRetry | ToolFailed):
            return one.message
        if isinstance(one, ToolError):
            return f"{one.message}. {one.hint}" if one.hint else one.message
    return None


def _failure_text(error: BaseException) -> str:
    """What a model is told of a tool's failure."""
    if isinstance(error, LlmDoError):
        if isinstance(error, RunError) and error.agent_path:
            return f"agent {error.agent_path} failed: {error.message}"
        return f"{error.message}. {error.hint}" if error.hint else error.message
    if isinstance(error, asyncio.CancelledError):
        return "what the tool waited for was cancelled"
    if isinstance(error, CallDeferred):
        return DEFERRED_REASON
    if isinstance(error, ApprovalRequired):
        return "the tool raised ApprovalRequired though the call was approved, as `ctx.tool_call_approved` says"
    return error_text(error)

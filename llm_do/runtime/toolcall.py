"""One tool call, in this order everywhere: validate, gate, hooks, approve, run, transition, hooks, record.

Validation is the library's, refused calls end in `refuse`; the rest is `run_tool_call`. Whatever happens, the call
gets one result, and one event tells how it ended.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import jsonschema
from jsonschema.protocols import Validator
from pydantic import ValidationError
from pydantic_ai import ToolDefinition, ToolDenied
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart, ToolReturn

from llm_do.errors import (
    AbortedError,
    LlmDoError,
    PermissionDeniedError,
    RunError,
    RunTimeoutError,
    ToolError,
    ToolFailedError,
)
from llm_do.runtime.approve import approve
from llm_do.runtime.context import CURRENT_TOOL, CallContext
from llm_do.runtime.hooks import HookAbort, HookPoint
from llm_do.runtime.results import Usage, output_text, to_json_data
from llm_do.runtime.traits import TRAITS_KEY, ToolTraits

__all__ = ["check_schema", "refuse", "run_tool_call", "validation_text"]

ENDS_RUN = (HookAbort, AbortedError, PermissionDeniedError, ToolFailedError, RunTimeoutError)
"""What passes through a tool call and ends the whole run, however deep it was raised."""

_PLAIN = ToolTraits()


def refuse(ctx: CallContext, call: ToolCallPart, reason: str) -> ToolFailed:
    """The failed result of a call that isn't even asked about; the caller raises it."""
    ctx.record_tool(call.tool_call_id, call.tool_name, "refused", reason)
    return ToolFailed(reason)


async def run_tool_call(
    ctx: CallContext,
    call: ToolCallPart,
    tool_def: ToolDefinition,
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Any:
    """Lead one validated call through the remaining steps.

    Args:
        ctx: The call whose model asks.
        call: What the model wrote.
        tool_def: The tool.
        args: The validated arguments.
        handler: Runs the tool.

    Returns:
        What the model is told.

    Raises:
        ToolFailed: The call failed; its text is the result.
        HookAbort: A hook raised.
        RunError: The run ends here.
    """
    traits: ToolTraits = (tool_def.metadata or {}).get(TRAITS_KEY) or _PLAIN
    status, result, size = "cancelled", "the run ended first", None
    hooks, agent = ctx.hooks, ctx.frame.config.agent
    try:
        if hooks:
            await hooks.call(HookPoint.PRE_TOOL_CALL, agent=agent, tool_name=call.tool_name, arguments=args)
        denial = await approve(ctx, call, traits, args)
        if denial is not None:
            status, result = "denied", denial
            return ToolDenied(denial)
        ctx.run.budget.tool_call()
        ctx.frame.usage += Usage(tool_calls=1)
        value = await _run(ctx, traits, args, handler)
        if hooks:
            await hooks.call(HookPoint.POST_TOOL_CALL, agent=agent, tool_name=call.tool_name, result=value)
        bounded, shown, size = _bounded(value, ctx.runtime.config.settings.max_result_bytes)
        status, result = "success", shown
        return bounded
    except ToolFailed as failure:
        timed_out = isinstance(failure.__cause__, TimeoutError) and failure.__cause__.args == (_TIMED_OUT,)
        status, result = ("timed_out" if timed_out else "failed"), failure.message
        raise
    except HookAbort as abort:
        status, result = "failed", f"a hook raised {type(abort.error).__name__}: {abort.error}"
        raise
    except LlmDoError as error:
        status, result = "failed", error.message
        raise
    finally:
        ctx.record_tool(call.tool_call_id, call.tool_name, status, result, size)


_TIMED_OUT = "tool timeout"


async def _run(
    ctx: CallContext, traits: ToolTraits, args: dict[str, Any], handler: Callable[[dict[str, Any]], Awaitable[Any]]
) -> Any:
    """Run the tool itself with its timeout; every failure becomes one failed result."""
    limit = traits.timeout if traits.timeout is not None else ctx.frame.config.tool_timeout
    given_up = threading.Event()
    token = CURRENT_TOOL.set(given_up)
    timer = asyncio.timeout(limit)
    try:
        async with timer:
            return await handler(args)
    except (ToolFailed, *ENDS_RUN):
        raise
    except Exception as error:
        if isinstance(error, TimeoutError) and timer.expired():
            raise ToolFailed(f"timed out after {limit:g} s") from TimeoutError(_TIMED_OUT)
        if ctx.runtime.config.settings.on_tool_error == "raise" and not isinstance(error, ToolError):
            raise ToolFailedError(_failure_text(error), agent_path=ctx.path) from error
        raise ToolFailed(_failure_text(error)) from error
    finally:
        given_up.set()
        CURRENT_TOOL.reset(token)


def _failure_text(error: Exception) -> str:
    """What a model is told of a tool's failure."""
    cause = error.__cause__ if isinstance(error.__cause__, ModelRetry | ToolFailed) else error
    if isinstance(cause, ModelRetry | ToolFailed):
        return cause.message
    if isinstance(cause, RunError) and cause.agent_path:
        return f"agent {cause.agent_path} failed: {cause.message}"
    if isinstance(cause, LlmDoError):
        return f"{cause.message}. {cause.hint}" if cause.hint else cause.message
    return f"{type(cause).__name__}: {cause}"


def _bounded(value: Any, limit: int) -> tuple[Any, Any, int | None]:
    """The result as the model gets it, as events show it, and its size in bytes before it was shortened."""
    if value is None or isinstance(value, bool | int | float):
        return value, value, None
    if isinstance(value, ToolReturn):
        returned = cast("ToolReturn[Any]", value)
        return returned, to_json_data(returned.return_value), None
    if isinstance(value, str):
        if len(value) * 4 <= limit:
            return value, value, None
        shown: Any = value
    else:
        if _has_media(value):
            return value, "[media]", None
        shown = to_json_data(value)
    raw = (shown if isinstance(shown, str) else output_text(shown)).encode("utf-8", "replace")
    if len(raw) <= limit:
        return value, shown, len(raw)
    text = _head_and_tail(raw, limit)
    return text, text, len(raw)


def _has_media(value: Any) -> bool:
    items = value if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownVariableType]
    return any(hasattr(item, "media_type") for item in items)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _head_and_tail(raw: bytes, limit: int) -> str:
    """Two thirds of the limit from the front, one third from the end, cut between characters."""
    head = raw[: limit * 2 // 3].decode("utf-8", "ignore")
    tail = raw[len(raw) - limit // 3 :].decode("utf-8", "ignore")
    cut = len(raw) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {cut} of {len(raw)} bytes left out; ask for a smaller part ...]\n{tail}"


def validation_text(tool_name: str, error: ValidationError | ModelRetry) -> str:
    """What a model is told of arguments that don't validate."""
    if isinstance(error, ModelRetry):
        return error.message
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)[:10]
    )
    return f"invalid arguments for {tool_name}: {faults}"


def check_schema(schema: Mapping[str, Any], args: object) -> str | None:
    """The first fault of arguments against a JSON Schema, None when there is none."""
    if not isinstance(args, dict):
        return "arguments must be a JSON object"
    fault = next(_validator(json.dumps(schema, sort_keys=True)).iter_errors(cast("dict[str, Any]", args)), None)
    if fault is None:
        return None
    where = ".".join(str(part) for part in fault.absolute_path)
    return f"{where}: {fault.message}" if where else fault.message


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator:
    return jsonschema.Draft202012Validator(json.loads(schema))

"""What Python does in a durable run, as steps: functions that are called by name, and `ctx.step`.

A step's result is JSON data that is read back, live as in a replay, so that code can't tell the two apart.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from llm_do.concurrency.large_values import json_data
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import EntryError, RunError
from llm_do.project.faults import DATA_HINT
from llm_do.runtime.context.aftermath import Aftermath
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import busy, ending_run, flush_record, live_step
from llm_do.runtime.record.store.store_writes import StepKind
from llm_do.runtime.steps.inner_calls import inner_calls
from llm_do.runtime.steps.stored_results import failure
from llm_do.text.canonical_json import digest
from llm_do.text.exception_text import exception_text
from llm_do.text.json_data import arguments_data, to_json_data

__all__ = ["run_code_step", "run_function_step"]


async def run_function_step(
    ctx: CallContext, function: Callable[..., Any], run: Callable[[], Awaitable[Any]], *, repeatable: bool
) -> Any:
    """Run a function that was called by name, in the context of its call; in a durable run it is a step."""
    if ctx.run.durable is None:
        await flush_record(ctx, required=True)
        return await run()
    return await _run_step(
        ctx, f"{ctx.call_id}/f", lambda: f"the call of {ctx.path}", "function", function, run, repeatable=repeatable
    )


async def run_code_step(ctx: CallContext, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run code that `ctx.step` was given: once over all attempts at a durable run."""
    if ctx.run.durable is None:
        return _read(function, await _data(ctx, name, await call_function(function, *args)))
    key = ctx.run.durable.log.numbered(f"{ctx.call_id}/s/{name}/{digest(to_json_data(args))[:16]}")
    return await _run_step(
        ctx,
        key,
        lambda: f"the step {name!r} of {ctx.path}",
        "code",
        function,
        lambda: call_function(function, *args),
        repeatable=True,
    )


async def _run_step(
    ctx: CallContext,
    key: str,
    what: Callable[[], str],
    kind: StepKind,
    function: Callable[..., Any],
    run: Callable[[], Awaitable[Any]],
    *,
    repeatable: bool,
) -> Any:
    assert ctx.run.durable is not None
    log = ctx.run.durable.log
    aftermath = Aftermath(ctx, ctx.run.durable, ctx.parent.frame.turn.toolkits if ctx.parent is not None else None)
    with ending_run(ctx):
        kept = log.replay(key)
        if kept is None:
            await live_step(ctx, key, what)
    if kept is not None:
        aftermath.replay(kept)
        if kept["error"] is not None:
            raise _error(kept["error"], ctx)
        return _read(function, kept["result"])
    ended: dict[str, Any] = {"result": None, "error": None}
    if not repeatable:
        if await _was_carried_out(ctx, key, function):
            with ending_run(ctx):
                await log.finish(key, kind, {"path": ctx.path, **ended, **aftermath.data()})
            return None
        with ending_run(ctx):
            await log.begin(key, kind, _beginning(ctx, function))
    failed: Exception | None = None
    with busy(ctx), inner_calls(key) as aftermath.inner:
        try:
            ended["result"] = await _data(ctx, ctx.frame.config.name, await run())
        except Exception as error:  # noqa: BLE001 (it is raised once it is kept)
            reraise_if_cancelled(error)
            failed = error
            ended["error"] = {"type": type(error).__name__, "message": exception_text(error)}
    with ending_run(ctx):
        await log.finish(key, kind, {"path": ctx.path, **ended, **aftermath.data()})
    if failed is not None:
        raise failed
    return _read(function, ended["result"])


def _beginning(ctx: CallContext, function: Callable[..., Any]) -> dict[str, Any]:
    """What a person is shown of a function that was running, and whether a result of it would be missing."""
    return {
        "tool_name": ctx.frame.config.name,
        "path": ctx.path,
        "args": arguments_data(ctx.frame.input),
        "has_result": not _returns_nothing(function),
    }


async def _was_carried_out(ctx: CallContext, key: str, function: Callable[..., Any]) -> bool:
    """Whether a person says that a function, which was running when the run stopped, was carried out.

    Raises:
        RunError: It isn't to be repeated, and isn't known to have ended, or what it returned is missing.
    """
    durable, name = ctx.run.durable, ctx.frame.config.name
    assert durable is not None
    if durable.log.in_flight(key) is None:
        return False
    decided = await durable.decide_in_flight(key)
    if decided == "repeat":
        return False
    hint = "A person chose not to repeat it; code that calls it may catch this."
    if decided == "fail":
        raise RunError(
            f"{name} was running when the run was stopped, and whether it had an effect isn't known",
            hint=hint,
            agent_path=ctx.path,
        )
    if not _returns_nothing(function):
        raise RunError(
            f"{name} was carried out as the run was stopped, and what it returned is lost",
            hint=hint,
            agent_path=ctx.path,
        )
    return True


def _returns_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function says that it returns nothing, so that nothing of it can be missing."""
    try:
        return get_type_hints(inspect.unwrap(function)).get("return") is type(None)
    except (TypeError, NameError, ValueError):
        return False


async def _data(ctx: CallContext, name: str, value: object) -> Any:
    try:
        return await json_data(value, strict=True)
    except (TypeError, ValueError) as error:
        raise EntryError(
            f"{name} returned a {type(value).__name__}, which can't be kept as JSON data",
            hint=DATA_HINT,
            agent_path=ctx.path,
        ) from error


def _error(kept: Mapping[str, str], ctx: CallContext) -> Exception:
    """The exception of a step that failed in an earlier attempt: of its class if that is one of Python's or ours."""
    kind = getattr(builtins, kept["type"], None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        return kind(kept["message"].removeprefix(f"{kept['type']}: "))
    return failure(kept["type"], kept["message"], agent_path=ctx.path)


def _read(function: Callable[..., Any], data: Any) -> Any:
    """Data as what a function says that it returns; as it is if it doesn't say."""
    try:
        returned = get_type_hints(inspect.unwrap(function), include_extras=True).get("return", Any)
        return TypeAdapter(returned).validate_python(data) if returned not in (Any, None) else data
    except (TypeError, NameError, ValueError):
        return data

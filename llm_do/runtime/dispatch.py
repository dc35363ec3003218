"""One calling convention: an agent, a flow or a function by its name, from Python or from a model.

Every nested call passes `_enter`, which checks depth and budget and makes the call's context.
"""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_ai import RunContext
from pydantic_ai.usage import RunUsage

from llm_do.errors import DepthLimitError, InputError, LlmDoError, RunError
from llm_do.project.agents import AgentSpec
from llm_do.project.inputs import PromptInput, to_input
from llm_do.runtime.call import CallConfig, CallFrame, CallScope
from llm_do.runtime.context import CURRENT_CALL, CallContext
from llm_do.runtime.limits import LoopGuard
from llm_do.runtime.null_model import NullModel
from llm_do.runtime.results import output_text
from llm_do.runtime.start import run_agent
from llm_do.runtime.tools import make_tool

__all__ = ["NULL_MODEL", "agent_context", "call_agent_tool", "call_by_name"]

NULL_MODEL = NullModel()
"""The model of everything that has none."""


class CallArguments(BaseModel):
    """The input of an exported function that is called by name, as events show it."""

    model_config = ConfigDict(extra="allow")


async def call_by_name(ctx: CallContext, name: str, value: object) -> Any:
    """Call what `name` stands for, as a child of `ctx`.

    Args:
        ctx: The caller.
        name: A registered name.
        value: The input.

    Returns:
        The output.

    Raises:
        RunError: The name is unknown, the call is too deep, or what was called ended early.
        InputError: The input doesn't fit.
    """
    found = ctx.runtime.registry.get(name)
    if found is None:
        near = ctx.runtime.registry.nearest(name)
        hint = f"Did you mean {near!r}?" if near else "Known names: " + ", ".join(ctx.runtime.registry)
        raise RunError(f"nothing is registered under the name {name!r}", hint=hint, agent_path=ctx.path)
    ctx.frame.children += 1
    call_id = f"{ctx.call_id}.{ctx.frame.children}"
    if found.kind == "agent":
        return await _call_agent(ctx, found.value, value, call_id)
    if found.kind == "tool":
        return await _call_function(ctx, name, found.value, value, call_id)
    if hasattr(found.value, "run"):
        return await found.value.run(value, ctx)
    raise RunError(
        f"{name!r} is a {found.kind}, which can't be called by itself",
        hint="Call an agent, a flow or an exported function; list a toolset in an agent.",
        agent_path=ctx.path,
    )


async def call_agent_tool(ctx: CallContext, spec: AgentSpec, args: dict[str, Any], tool_call_id: str) -> Any:
    """Call an agent because a model asked for it; the call's id comes from the tool call's.

    Returns:
        Text verbatim, other outputs as JSON.
    """
    output = await _call_agent(ctx, spec, args, f"{ctx.call_id}.{tool_call_id}")
    return output_text(output)


async def _call_agent(ctx: CallContext, spec: AgentSpec, value: object, call_id: str) -> Any:
    given = _input(ctx, spec.name, spec.input_model or PromptInput, value)
    child = agent_context(ctx, spec, given, call_id=call_id)
    return await run_agent(child, ctx.runtime.builder.built(spec), nested=True)


def agent_context(ctx: CallContext, spec: AgentSpec, given: BaseModel, *, call_id: str) -> CallContext:
    """The context of one call of an agent; nothing of the caller's is inherited but the run.

    Args:
        ctx: The caller.
        spec: The agent.
        given: The validated input.
        call_id: The call's id, derived from the caller's.

    Returns:
        The child's context.

    Raises:
        DepthLimitError: It would be too deep.
        BudgetError: The run may make no more calls.
        ModelUnavailableError: Its model can't be had.
    """
    config = _enter(ctx, spec.name, call_id)
    runtime = ctx.runtime
    built = runtime.builder.built(spec)
    settings = runtime.config.settings
    frame = CallFrame(
        CallConfig(
            name=spec.name,
            path=config.path,
            depth=config.depth,
            call_id=config.call_id,
            parent_call_id=config.parent_call_id,
            model=runtime.model_for(built),
            active_toolsets=built.toolsets,
            agent=spec,
            max_steps=runtime.config.max_steps or spec.max_steps or settings.max_steps,
            tool_timeout=spec.tool_timeout if spec.tool_timeout is not None else settings.tool_timeout,
        ),
        given,
        hooks=built.hooks,
        loops=LoopGuard(settings.loop_threshold if spec.loop_threshold is None else spec.loop_threshold),
    )
    return CallContext(runtime, ctx.run, frame, ctx)


def _enter(ctx: CallContext, name: str, call_id: str) -> CallConfig:
    """The configuration of a nested call, once it is known that the call may be made."""
    limit = ctx.runtime.config.settings.max_depth
    parent = ctx.frame.config
    path = f"{parent.path}/{name}" if parent.path else name
    if parent.depth + 1 > limit:
        raise DepthLimitError(
            f"calling {name!r} would be deeper than {limit} calls",
            hint="Raise `runtime.max_depth` or --max-depth, or end the recursion earlier.",
            agent_path=path,
        )
    # What an entry agent does is the run itself; everything below is a descendant.
    if parent.path:
        ctx.run.budget.descendant()
    return CallConfig(
        name=name,
        path=path,
        depth=parent.depth + 1,
        call_id=ctx.run.unique_call_id(call_id),
        parent_call_id=parent.call_id,
        model=NULL_MODEL,
    )


async def _call_function(ctx: CallContext, name: str, item: Any, value: object, call_id: str) -> Any:
    """Call an exported function with arguments that are validated as a model's would be; it is trusted code."""
    tool = make_tool(item, name)
    data = value.model_dump() if isinstance(value, BaseModel) else value
    if isinstance(data, str):
        fields = list(tool.function_schema.json_schema.get("properties", {}))
        data = {fields[0] if len(fields) == 1 else "input": data}
    try:
        args: dict[str, Any] = tool.function_schema.validator.validate_python(data)
    except ValueError as error:
        raise InputError(f"input does not fit {name}: {_one_line(error)}", agent_path=ctx.path) from error
    frame = CallFrame(_enter(ctx, name, call_id), CallArguments.model_validate(_shown(data)))
    child = CallContext(ctx.runtime, ctx.run, frame, ctx)
    run_context = RunContext(deps=child, model=NULL_MODEL, usage=RunUsage(), tool_name=name, tool_call_id=child.call_id)
    token = CURRENT_CALL.set(child)
    try:
        async with CallScope(child, nested=True) as scope:
            schema = tool.function_schema
            if inspect.iscoroutinefunction(schema.function):
                scope.output = await schema.call(args, run_context)
            else:
                scope.output = await ctx.runtime.in_thread(_call_sync, schema, args, run_context)
            return scope.output
    finally:
        CURRENT_CALL.reset(token)


def _call_sync(schema: Any, args: dict[str, Any], run_context: RunContext[CallContext]) -> Any:
    positional = [run_context] if schema.takes_ctx else []
    return schema.function(*positional, **args)


def _input(ctx: CallContext, name: str, model: type[BaseModel], value: object) -> BaseModel:
    try:
        return to_input(model, value)
    except LlmDoError as error:
        error.agent_path = error.agent_path or f"{ctx.path}/{name}"
        raise


def _shown(data: object) -> dict[str, Any]:
    return {str(key): value for key, value in data.items()} if isinstance(data, dict) else {"input": data}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _one_line(error: ValueError) -> str:
    faults = getattr(error, "errors", None)
    if callable(faults):
        listed: Any = faults(include_url=False, include_input=False)
        return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'input'}: {fault['msg']}" for fault in listed)
    return str(error)

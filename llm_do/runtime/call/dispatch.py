"""One calling convention: an agent, a flow or a function by its name, from Python or from a model.

Every nested call passes `llm_do.runtime.call.nested_context.enter`, which checks depth and budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.usage import RunUsage

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import WORKERS, call_function
from llm_do.errors import InputError, LlmDoError, RunError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.argument_schemas import check_schema
from llm_do.project.functions import input_annotation, takes_context
from llm_do.project.inputs import PromptInput, to_input
from llm_do.project.registry import Registered
from llm_do.runtime.call.call_scope import CallFrame, CallScope
from llm_do.runtime.call.flow_turn import FlowTurn, run_flow
from llm_do.runtime.call.handoff_chain import Chain
from llm_do.runtime.call.nested_context import enter
from llm_do.runtime.context.call_context import CURRENT_CALL, CallContext
from llm_do.runtime.context.null_model import NULL_MODEL
from llm_do.runtime.record.results import output_text
from llm_do.runtime.tools.iterated_results import UNLIMITED_ITEMS, collect_items
from llm_do.runtime.tools.traits import traits_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.project.flow_spec import FlowSpec

__all__ = ["call_agent_tool", "call_by_name", "call_found"]


class CallArguments(BaseModel):
    """The input of an exported function that is called by name, as events show it."""

    model_config = ConfigDict(extra="allow")


async def call_by_name(ctx: CallContext, name: str, value: object) -> Any:
    """Call what `name` stands for, as a child of `ctx`."""
    found = ctx.runtime.registry.get(name)
    if found is None:
        near = ctx.runtime.registry.nearest(str(name))
        hint = f"Did you mean {near!r}?" if near else "Known names: " + ", ".join(ctx.runtime.registry)
        unknown = RunError(f"nothing is registered under the name {name!r}", hint=hint, agent_path=ctx.path)
        ctx.run.note_error(unknown, ctx.path)
        raise unknown
    ctx.frame.children += 1
    return await call_found(ctx, found, value, f"{ctx.call_id}.{ctx.frame.children}")


async def call_found(
    ctx: CallContext,
    found: Registered,
    value: object,
    call_id: str,
    *,
    position: str = "",
    history: Sequence[ModelMessage] = (),
    messages: list[ModelMessage] | None = None,
) -> Any:
    """Call an agent, a flow or a function, as a child of `ctx`."""
    messages = [] if messages is None else messages
    try:
        if found.kind == "agent":
            spec: AgentSpec = found.value
            given = _input(ctx, spec.name, spec.input_model or PromptInput, value)
            return await Chain(ctx, call_id, position, messages=messages).run(spec, given, history)
        if found.kind == "flow":
            return await _call_flow(ctx, found, value, call_id, position, history, messages)
        if found.kind == "tool":
            call = _call_context_function if takes_context(found.value) else _call_function
            return await call(ctx, found.name, found.value, value, call_id, position)
        raise RunError(
            f"{found.name!r} is a {found.kind}, which can't be called by itself",
            hint="Call an agent, a flow or an exported function; list a toolset in an agent.",
            agent_path=ctx.path,
        )
    except BaseException as error:
        reraise_if_cancelled(error)
        if isinstance(error, LlmDoError):
            # One that kept the call from beginning is no other record's; the caller may go on without it.
            ctx.run.note_error(error, ctx.path)
        raise


async def call_agent_tool(ctx: CallContext, spec: AgentSpec, args: dict[str, Any], tool_call_id: str) -> Any:
    """Call an agent because a model asked for it; the call's id comes from the tool call's."""
    output = await call_found(ctx, Registered(spec.name, "agent", spec), args, f"{ctx.call_id}.{tool_call_id}")
    return output_text(output)


async def _call_flow(
    ctx: CallContext,
    found: Registered,
    value: object,
    call_id: str,
    position: str,
    history: Sequence[ModelMessage],
    messages: list[ModelMessage],
) -> Any:
    flow: FlowSpec = found.value
    given = _input(ctx, found.name, flow.input_model(ctx.runtime.registry), value)
    child = CallContext(ctx.runtime, ctx.run, CallFrame(enter(ctx, found.name, call_id, position), given), ctx)
    token = CURRENT_CALL.set(child)
    try:
        async with CallScope(child, nested=True) as scope:
            turn = FlowTurn(child, history, messages)
            try:
                return scope.returns(await run_flow(flow, given, turn))
            finally:
                if position:
                    ctx.frame.text = child.frame.text
    finally:
        CURRENT_CALL.reset(token)


async def _call_context_function(
    ctx: CallContext, name: str, function: Any, value: object, call_id: str, position: str = ""
) -> Any:
    """Call a function of the form `(input, ctx)` with the input it says it takes."""
    given = _context_input(ctx, name, input_annotation(function), value)
    shown = given if isinstance(given, BaseModel) else CallArguments.model_validate({"input": given})
    child = CallContext(ctx.runtime, ctx.run, CallFrame(enter(ctx, name, call_id, position), shown), ctx)
    token = CURRENT_CALL.set(child)
    try:
        async with CallScope(child, nested=True) as scope:
            return scope.returns(await collect_items(await call_function(function, given, child), UNLIMITED_ITEMS))
    finally:
        CURRENT_CALL.reset(token)


async def _call_function(
    ctx: CallContext, name: str, item: Any, value: object, call_id: str, position: str = ""
) -> Any:
    """Call an exported function with arguments that are validated as a model's would be; it is trusted code."""
    tool = ctx.runtime.builder.tool(item, name)
    data = value.model_dump() if isinstance(value, BaseModel) else value
    if isinstance(data, str):
        fields = list(tool.function_schema.json_schema.get("properties", {}))
        data = {fields[0] if len(fields) == 1 else "input": data}
    args = _arguments(ctx, name, tool, data)
    frame = CallFrame(enter(ctx, name, call_id, position), CallArguments.model_validate(_shown(data)))
    child = CallContext(ctx.runtime, ctx.run, frame, ctx)
    run_context = RunContext(
        deps=child,
        model=NULL_MODEL,
        usage=RunUsage(),
        tool_name=name,
        tool_call_id=child.call_id,
        tool_call_approved=True,
    )
    token = CURRENT_CALL.set(child)
    try:
        async with CallScope(child, nested=True) as scope:
            with Agent.using_thread_executor(WORKERS):
                return scope.returns(
                    await collect_items(await tool.function_schema.call(args, run_context), UNLIMITED_ITEMS)
                )
    finally:
        CURRENT_CALL.reset(token)


def _context_input(ctx: CallContext, name: str, annotation: Any, value: object) -> Any:
    """What a function of the form `(input, ctx)` is given: what its annotation says, made of a caller's input."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _input(ctx, name, annotation, value)
    if isinstance(value, PromptInput):
        value = value.input
    if annotation is str:
        return output_text(value)
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", annotation))
    try:
        return adapter.validate_python(value if not isinstance(value, BaseModel) else value.model_dump())
    except ValueError as error:
        raise InputError(f"input does not fit {name}: {_one_line(error)}", agent_path=ctx.path) from error


def _arguments(ctx: CallContext, name: str, tool: Tool[Any], data: object) -> dict[str, Any]:
    """Arguments from Python, validated as a model's would be."""
    try:
        args: dict[str, Any] = tool.function_schema.validator.validate_python(data)
        traits = traits_of(tool.metadata)
        fault = check_schema(tool.function_schema.json_schema, args) if traits is None or traits.unchecked else None
    except ValueError as error:
        fault = _one_line(error)
        raise InputError(f"input does not fit {name}: {fault}", hint=_takes(tool), agent_path=ctx.path) from error
    if fault is not None:
        raise InputError(f"input does not fit {name}: {fault}", hint=_takes(tool), agent_path=ctx.path)
    return args


def _takes(tool: Tool[Any]) -> str:
    """The parameters of a function, for a caller whose input doesn't fit."""
    return f"It takes {', '.join(tool.function_schema.json_schema.get('properties', ())) or 'nothing'}."


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

"""One calling convention: an agent, a flow or a function is called by `invoke`, from Python, a model or a flow.

`call_by_name` looks the name up first. An entry is a call at depth 0: it runs in the run's own context
(`llm_do.runtime.session.entries`), everything else in a context that is opened here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do._extensions import ExtensionPoint
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.turnstile import Turnstile
from llm_do.errors import LlmDoError, RunError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.functions import takes_context
from llm_do.project.inputs import PromptInput
from llm_do.project.registry import Registered, callable_names
from llm_do.runtime.call.call_scope import CallScope, CallSite, open_call
from llm_do.runtime.call.code_step import run_function_step
from llm_do.runtime.call.function_call import FunctionCall, checked_input, function_call
from llm_do.runtime.call.handoff_chain import HandoffChain
from llm_do.runtime.call.toolset_call import find_toolset_call, toolset_tool_names
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.call_frame import CallFrame, Turn
from llm_do.runtime.context.emission import flush_record
from llm_do.text.words import which_name

if TYPE_CHECKING:
    from pydantic import BaseModel

    from llm_do.project.flow_spec import FlowSpec

__all__ = ["RUN_FLOW", "call_by_name", "invoke", "run_flow"]

RUN_FLOW: ExtensionPoint[Callable[[FlowSpec, BaseModel, CallContext], Awaitable[Any]]] = ExtensionPoint("run_flow")
"""How a flow of any kind is run."""


async def call_by_name(ctx: CallContext, name: str, value: object, label: str = "") -> Any:
    """Call what `name` stands for, as a child of `ctx`; `label` distinguishes the call for people."""
    found = ctx.runtime.registry.get(name)
    if found is None:
        async with find_toolset_call(ctx, str(name), value) as tool:
            if tool is not None:
                child = _child(ctx, str(name), CallSite.in_code(ctx, str(name), value), tool.input, Turn())
                async with CallScope(child) as scope:
                    run = partial(tool.run, ctx, child)
                    return await scope.returns(await run_function_step(child, run, run, repeatable=tool.repeatable))
        known = [*callable_names(ctx.runtime.registry), *toolset_tool_names(ctx)]
        hint = which_name(str(name), known)
        unknown = RunError(f"nothing is registered under the name {name!r}", hint=hint, agent_path=ctx.path)
        ctx.run.record_error(unknown, ctx.path)
        raise unknown
    output = await invoke(found, value, ctx, CallSite.in_code(ctx, name, value, label))
    if ctx.run.durable is not None:  # code may do anything with it
        await flush_record(ctx, required=True)
    return output


async def invoke(
    found: Registered, value: object, ctx: CallContext, site: CallSite | None = None, turn: Turn | None = None
) -> Any:
    """Call an agent, a flow or a function, as a child of `ctx`.

    Args:
        found: What is called.
        value: Its input.
        ctx: The caller.
        site: Where the caller makes the call; None is the next one from Python.
        turn: The turn of the conversation that the call continues; None begins one.
    """
    site, turn = site or CallSite.in_code(ctx, found.name, value), turn or Turn()
    try:
        if found.kind == "agent":
            spec: AgentSpec = found.value
            if ctx.frame.agents is None:
                # No more agents than requests: others would only wait for a slot, having held up the loop.
                ctx.frame.agents = Turnstile(ctx.runtime.config.settings.max_concurrency)
            async with ctx.frame.agents:
                input = checked_input(ctx, spec.name, spec.input_model or PromptInput, value)
                return await HandoffChain(ctx, site, turn).run(spec, input)
        if found.kind == "flow":
            return await _call_flow(found, value, ctx, site, turn)
        if found.kind == "tool":
            function = function_call(found, value, ctx)
            child = _child(ctx, found.name, site, function.input, turn)
            async with CallScope(child) as scope:
                return await scope.returns(await _run_function(function, child), function.function)
        raise RunError(
            f"{found.name!r} is a {found.kind}, which can't be called by itself",
            hint="Call one of its tools by its own name, or list it in an agent.",
            agent_path=ctx.path,
        )
    except BaseException as error:
        reraise_if_cancelled(error)
        if isinstance(error, LlmDoError):
            # If it kept the call from beginning, nothing else records it, and the caller may survive it.
            ctx.run.record_error(error, ctx.path)
        raise


async def _call_flow(found: Registered, value: object, ctx: CallContext, site: CallSite, turn: Turn) -> Any:
    flow: FlowSpec = found.value
    input = checked_input(ctx, found.name, flow.input_model(ctx.runtime.registry), value)
    child = _child(ctx, found.name, site, input, turn)
    async with CallScope(child) as scope:
        try:
            return await scope.returns(await run_flow(flow, input, child))
        finally:
            if site.position:
                ctx.frame.text = child.frame.text


async def run_flow(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    """Run a flow in its call's context; how flows run is `llm_do.flows`, imported when the first one does."""
    return await RUN_FLOW.get()(flow, input, ctx)


async def _run_function(function: FunctionCall, child: CallContext) -> Any:
    """Run a function; one of the form `(input, ctx)` makes calls, so a durable run runs it again."""
    run = partial(function.run, child)
    if takes_context(function.function):
        await flush_record(child, required=True)
        return await run()
    return await run_function_step(child, function.function, run, repeatable=function.repeatable)


def _child(ctx: CallContext, name: str, site: CallSite, input: BaseModel, turn: Turn) -> CallContext:
    return CallContext(ctx.runtime, ctx.run, CallFrame(open_call(ctx, name, site), input, turn), ctx)

"""The one place that starts agent runs. Whatever ends one, its history is one that a strict provider accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, capture_run_messages, exceptions
from pydantic_ai.messages import ModelMessage
from pydantic_ai.usage import UsageLimits

from llm_do.concurrency.event_loops import cancel_and_wait
from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.concurrency.worker_threads import WORKERS
from llm_do.errors import EntryError, LlmDoError, ModelUnavailableError, RunError
from llm_do.models.pool import CONNECTION_SETTINGS
from llm_do.project.faults import find_fault, project_error
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.call.call_scope import CallScope, CallSite, open_call
from llm_do.runtime.call.context_providers import dynamic_instructions
from llm_do.runtime.call.guards import guard_input, guard_output
from llm_do.runtime.call.own_deps import agent_deps
from llm_do.runtime.call.prompt import make_prompt
from llm_do.runtime.call.provider_tools import check_provider_tools
from llm_do.runtime.context.budget import LoopGuard
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.call_frame import CallFrame
from llm_do.runtime.context.emission import emit
from llm_do.runtime.context.history_compaction import compaction_of
from llm_do.runtime.context.hooks import HookPoint
from llm_do.runtime.record.events.run_events import HandoffEvent
from llm_do.runtime.record.histories import close_history
from llm_do.runtime.request.cut_answers import behaviour_error
from llm_do.runtime.request.model_choice import model_for
from llm_do.runtime.tools.call_gates import CallGates
from llm_do.runtime.tools.handoffs import HandoffSignal, handoff_by_text

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.settings import ModelSettings

    from llm_do.machines.machine import ToolkitState
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.runtime.context.built_agent import BuiltAgent

__all__ = ["agent_context", "run_agent"]

NO_LIMITS = UsageLimits(request_limit=None)
"""The library's own limits check before they count, which parallel calls pass; ours are in `context.budget`."""

NO_THREAD = ThreadConfig()
"""The configuration of agents that others call: a thread's settings are those of its conversation."""


def agent_context(
    ctx: CallContext, spec: AgentSpec, input: BaseModel, site: CallSite, toolkits: Mapping[str, ToolkitState]
) -> CallContext:
    """The context of one call of an agent; nothing of the caller's is inherited but the run."""
    config = open_call(ctx, spec.name, site)
    runtime = ctx.runtime
    built = runtime.builder.build(spec)
    settings = runtime.config.settings
    thread = ctx.run.thread.config if config.depth == 1 else NO_THREAD
    try:
        model = model_for(runtime, built, thread.model, ctx.run.thread_id)
    except ModelUnavailableError as error:
        error.agent_path = config.path
        raise
    gating = CallGates(built.declared, toolkits)
    for gate in built.machines:
        gating.state(gate)
    frame = CallFrame(
        replace(
            config,
            model=model,
            active_toolsets=built.toolsets,
            agent=spec,
            max_steps=_first_set(runtime.config.max_steps, spec.max_steps, settings.max_steps),
            tool_timeout=spec.tool_timeout if spec.tool_timeout is not None else settings.tool_timeout,
        ),
        input,
        hooks=built.hooks,
        loops=LoopGuard(settings.loop_threshold if spec.loop_threshold is None else spec.loop_threshold),
        gating=gating,
        compaction=compaction_of(thread.compaction if thread.compaction is not None else spec.compaction),
    )
    return CallContext(runtime, ctx.run, frame, ctx)


def _first_set(*limits: int | None) -> int:
    return next(limit for limit in limits if limit is not None)


async def run_agent(ctx: CallContext, history: Sequence[ModelMessage], *, listed: bool, resumes: bool) -> Any:
    """Run an agent in its call's context; `resumes` continues a history that ends with the request."""
    assert ctx.frame.config.agent is not None
    built = ctx.runtime.builder.build(ctx.frame.config.agent)
    async with CallScope(ctx, listed=listed) as scope:
        with capture_run_messages() as captured, Agent.using_thread_executor(WORKERS):
            try:
                output = await _output(ctx, built, history, captured, resumes=resumes)
            except BaseException as error:
                failure = await _end(error, ctx, built, captured or list(history))
                if failure is error:
                    raise
                raise failure from error
        return await scope.returns(output)


async def _output(
    ctx: CallContext,
    built: BuiltAgent,
    history: Sequence[ModelMessage],
    captured: list[ModelMessage],
    *,
    resumes: bool,
) -> Any:
    """Run the agent between its hooks; its output, None where it handed over."""
    frame, spec, hooks = ctx.frame, built.spec, built.hooks
    frame.deps = built.deps or agent_deps(spec, ctx)
    if spec.server_side_tools:
        await check_provider_tools(ctx, spec)
    if hooks:
        await hooks.call(HookPoint.START, agent=spec)
    if spec.input_guards and not resumes:
        await guard_input(ctx, spec.input_guards)
    frame.prompt = None if resumes else await make_prompt(frame.input, ctx.project.root)
    if ctx.run.records_steps and ctx.depth == 1 and ctx.run.recording is not None:
        frame.live = captured
        ctx.run.recording.attach(frame.gating.result)
    thread = ctx.run.thread.config if ctx.depth == 1 else None
    try:
        result = await built.agent.run(
            frame.prompt,
            model=frame.config.model,
            deps=ctx if frame.deps is None else frame.deps[0],
            message_history=list(history) or None,
            usage_limits=NO_LIMITS,
            infer_name=False,
            capabilities=built.capabilities or None,
            instructions=await dynamic_instructions(ctx, spec, thread),
            model_settings=_thread_settings(thread),
        )
        output, frame.messages = result.output, result.all_messages()
    except HandoffSignal:
        output, frame.messages = None, close_history(captured)
    finally:
        if frame.lifecycle is not None and not frame.lifecycle.done():
            await cancel_and_wait(frame.lifecycle)
    if frame.handoff is None:
        frame.handoff = handoff_by_text(spec, output)
    if handoff := frame.handoff:
        emit(ctx, HandoffEvent, source=spec.name, target=handoff.target, reason=handoff.reason)
    elif spec.output_guards:
        output = await guard_output(ctx, spec.output_guards, output, spec.output_type)
    if hooks:
        await hooks.call(HookPoint.FINISHED, agent=spec)
    return output


async def _end(
    error: BaseException, ctx: CallContext, built: BuiltAgent, history: Sequence[ModelMessage]
) -> BaseException:
    """What an agent's early end is raised as, once its history is kept and its hooks have run."""
    failure, frame = _as_failure(error, ctx), ctx.frame
    if isinstance(failure, RunError):
        history = failure.messages or history
    frame.messages = close_history(history)
    if isinstance(failure, RunError):
        failure.messages = list(frame.messages)
    if built.hooks and isinstance(failure, Exception | RunEndSignal):
        cause = failure.error if isinstance(failure, RunEndSignal) else failure
        await built.hooks.call(HookPoint.ERROR, agent=built.spec, error=cause)
    return failure


def _thread_settings(thread: ThreadConfig | None) -> ModelSettings | None:
    """A thread's model settings, which override the agent's."""
    if thread is None or not thread.model_settings:
        return None
    settings: Any = {key: value for key, value in thread.model_settings.items() if key not in CONNECTION_SETTINGS}
    return settings


def _as_failure(error: BaseException, ctx: CallContext) -> BaseException:
    """An agent run's failure as one of our errors."""
    if isinstance(error, LlmDoError):
        error.agent_path = error.agent_path or ctx.path
        return error
    try:
        reraise_if_cancelled(error)
    except BaseException as end:  # noqa: BLE001 (the caller raises it, once everything is closed)
        return end
    name = ctx.frame.config.name
    if isinstance(error, exceptions.UnexpectedModelBehavior):
        return behaviour_error(name, error, ctx.path)
    if isinstance(error, exceptions.UserError):
        fault = find_fault(error, ctx.project.root)
        text = f"agent {name!r} can't run: {error.message}"
        return EntryError(
            text,
            file=fault.file,
            line=fault.line,
            agent_path=ctx.path,
            hint="correct how the agent, its tools or its model are set up",
        )
    return project_error(EntryError, f"agent {name!r} can't run:", error, ctx.project.root, agent_path=ctx.path)

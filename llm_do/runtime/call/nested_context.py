"""The contexts of nested calls. Every nested call passes `enter`, which checks depth and budget.

What is called, and with what, is decided in `llm_do.runtime.call.dispatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from llm_do.errors import DepthLimitError, ModelUnavailableError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.call.call_scope import CallConfig, CallFrame
from llm_do.runtime.context.budget import LoopGuard
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.null_model import NULL_MODEL
from llm_do.runtime.request.history_compaction import compaction_of
from llm_do.runtime.request.model_choice import model_for
from llm_do.runtime.toolcall.gatekeeper import CallGates
from llm_do.runtime.tools.gated_tools import GateState

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.runtime.agents.agent_builder import BuiltAgent
    from llm_do.runtime.runtime import Runtime

__all__ = ["agent_context", "enter"]

NO_THREAD = ThreadConfig()
"""What holds for agents that others call: a thread's settings are those of its conversation."""


def agent_context(
    ctx: CallContext,
    spec: AgentSpec,
    given: BaseModel,
    *,
    call_id: str,
    position: str = "",
    toolkits: Mapping[str, GateState] | None = None,
) -> CallContext:
    """The context of one call of an agent; nothing of the caller's is inherited but the run."""
    config = enter(ctx, spec.name, call_id, position)
    runtime = ctx.runtime
    built = runtime.builder.built(spec)
    settings = runtime.config.settings
    thread = ctx.run.thread.config if config.depth == 1 else NO_THREAD
    gating = CallGates(built.declared, toolkits)
    for gate in built.machines:
        gating.state(gate)
    frame = CallFrame(
        CallConfig(
            name=spec.name,
            path=config.path,
            depth=config.depth,
            call_id=config.call_id,
            parent_call_id=config.parent_call_id,
            model=_model(runtime, built, config.path, thread.model, ctx.run.thread_id),
            active_toolsets=built.toolsets,
            agent=spec,
            max_steps=_first_said(runtime.config.max_steps, spec.max_steps, settings.max_steps),
            tool_timeout=spec.tool_timeout if spec.tool_timeout is not None else settings.tool_timeout,
        ),
        given,
        hooks=built.hooks,
        loops=LoopGuard(settings.loop_threshold if spec.loop_threshold is None else spec.loop_threshold),
        gating=gating,
        compaction=compaction_of(thread.compaction if thread.compaction is not None else spec.compaction),
    )
    return CallContext(runtime, ctx.run, frame, ctx)


def _model(
    runtime: Runtime, built: BuiltAgent, path: str, of_thread: str | Sequence[str] | None, thread_id: str | None
) -> Model:
    """The model that an agent asks; an error says which call wanted it."""
    try:
        return model_for(runtime, built, of_thread, thread_id)
    except ModelUnavailableError as error:
        error.agent_path = path
        raise


def _first_said(*limits: int | None) -> int:
    return next(limit for limit in limits if limit is not None)


def enter(ctx: CallContext, name: str, call_id: str, position: str = "") -> CallConfig:
    """The configuration of a nested call, once it is known that the call may be made."""
    limit = ctx.runtime.config.settings.max_depth
    parent = ctx.frame.config
    path = f"{parent.path}/{position}{name}" if parent.path else f"{position}{name}"
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

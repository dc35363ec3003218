"""The one place that starts agent runs. Whatever ends one, its history is one that a strict provider accepts."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, BinaryContent, capture_run_messages, exceptions
from pydantic_ai.messages import ModelMessage, UserContent
from pydantic_ai.usage import UsageLimits

from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.concurrency.worker_threads import WORKERS, run_in_worker
from llm_do.errors import EntryError, InputError, LlmDoError, ModelBehaviourError, RunError, error_text
from llm_do.files.root import Root
from llm_do.models.pool import CONNECTION_SETTINGS
from llm_do.project.inputs import AgentArgs, Attachment
from llm_do.runtime.call.call_scope import CallScope
from llm_do.runtime.call.context_providers import dynamic_instructions
from llm_do.runtime.context.call_context import CURRENT_CALL, CallContext
from llm_do.runtime.context.failure_place import project_location
from llm_do.runtime.context.hooks import HookPoint
from llm_do.runtime.record.emission import emit
from llm_do.runtime.record.events import HandoffEvent
from llm_do.runtime.record.histories import close_history
from llm_do.runtime.tools.handoffs import HandedOver, handoff_of

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.settings import ModelSettings

    from llm_do.project.thread_config import ThreadConfig
    from llm_do.runtime.agents.agent_builder import BuiltAgent

__all__ = ["ATTACHMENT_LIMIT", "run_agent"]

ATTACHMENT_LIMIT = 20 * 1024 * 1024
"""Bytes of one attachment: the least of what the large providers accept in a request."""

NO_LIMITS = UsageLimits(request_limit=None)
"""The library's own limits check before they count, which parallel calls pass; ours are in `limits`."""


async def run_agent(
    ctx: CallContext,
    built: BuiltAgent,
    *,
    nested: bool,
    history: Sequence[ModelMessage] = (),
    resumes: bool = False,
) -> Any:
    """Run an agent in its call's context."""
    token = CURRENT_CALL.set(ctx)
    try:
        async with CallScope(ctx, nested=nested) as scope:
            with capture_run_messages() as captured, Agent.using_thread_executor(WORKERS):
                try:
                    output = await _output(ctx, built, history, captured, resumes=resumes)
                except BaseException as error:
                    told = await _ended(error, ctx, built, captured or list(history))
                    if told is error:
                        raise
                    raise told from error
            return scope.returns(output)
    finally:
        CURRENT_CALL.reset(token)


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
    if hooks:
        await hooks.call(HookPoint.START, agent=spec)
    frame.prompt = None if resumes else await _prompt(ctx, frame.input)
    if ctx.run.records_steps and ctx.depth == 1 and ctx.run.recording is not None:
        frame.live = captured
        ctx.run.recording.attach(frame.gating.result)
    thread = ctx.run.thread.config if ctx.depth == 1 else None
    try:
        result = await built.agent.run(
            frame.prompt,
            model=frame.config.model,
            deps=ctx,
            message_history=list(history) or None,
            usage_limits=NO_LIMITS,
            infer_name=False,
            capabilities=built.capabilities or None,
            instructions=await dynamic_instructions(ctx, spec, thread),
            model_settings=_settings(thread),
        )
        output, frame.messages = result.output, result.all_messages()
    except HandedOver:
        output, frame.messages = None, close_history(captured)
    if handoff := handoff_of(ctx, spec, output):
        emit(ctx, HandoffEvent, source=spec.name, target=handoff.target, reason=handoff.reason)
    if hooks:
        await hooks.call(HookPoint.FINISHED, agent=spec)
    return output


async def _ended(
    error: BaseException, ctx: CallContext, built: BuiltAgent, seen: Sequence[ModelMessage]
) -> BaseException:
    """What an agent's early end is raised as; its history is kept, and its hooks are told."""
    told, frame = _translated(error, ctx), ctx.frame
    if isinstance(told, RunError):
        seen = told.messages or seen
    frame.messages = close_history(seen)
    if isinstance(told, RunError):
        told.messages = list(frame.messages)
    if built.hooks and isinstance(told, Exception | RunEndSignal):
        await built.hooks.call(HookPoint.ERROR, agent=built.spec, error=_bare(told))
    return told


def _settings(thread: ThreadConfig | None) -> ModelSettings | None:
    """A thread's model settings, which go over the agent's."""
    if thread is None or not thread.model_settings:
        return None
    sent: Any = {key: value for key, value in thread.model_settings.items() if key not in CONNECTION_SETTINGS}
    return sent


def _bare(error: Exception | RunEndSignal) -> Exception:
    return error.error if isinstance(error, RunEndSignal) else error


def _translated(error: BaseException, ctx: CallContext) -> BaseException:
    """What an agent run's failure is called here."""
    if isinstance(error, LlmDoError):
        error.agent_path = error.agent_path or ctx.path
        return error
    try:
        reraise_if_cancelled(error)
    except BaseException as ends:  # noqa: BLE001 (it is the caller who raises it, once everything is closed)
        return ends
    name = ctx.frame.config.name
    if isinstance(error, exceptions.UnexpectedModelBehavior):
        return ModelBehaviourError(
            f"the model of agent {name!r} kept answering invalidly: {error.message}",
            hint="Raise `retries`, make the output's schema simpler, or use a stronger model.",
            agent_path=ctx.path,
        )
    if isinstance(error, exceptions.UserError):
        return EntryError(f"agent {name!r} can't run: {error.message}", agent_path=ctx.path)
    file, line = project_location(error, ctx.project.root)
    return EntryError(
        f"agent {name!r} can't run: {error_text(error)}",
        hint="--debug shows the traceback.",
        file=file,
        line=line,
        agent_path=ctx.path,
    )


async def _prompt(ctx: CallContext, value: BaseModel) -> str | list[UserContent]:
    """The input as a model is asked it; attachments are read here, below the project's root only."""
    parts = value.prompt_messages() if isinstance(value, AgentArgs) else [value.model_dump_json()]
    said: list[UserContent] = [
        await run_in_worker(_read, ctx, part) if isinstance(part, Attachment) else part for part in parts
    ]
    if len(said) == 1 and isinstance(said[0], str):
        return said[0]
    return said


def _read(ctx: CallContext, attachment: Attachment) -> BinaryContent:
    data = attachment.data
    if data is None:
        try:
            data = Root(ctx.project.root).read(attachment.path, limit=ATTACHMENT_LIMIT + 1)
        except LlmDoError as error:
            raise InputError(
                f"can't attach {attachment.path!r}: {error.message}",
                hint="Attachments are files below the project root.",
            ) from error
    if len(data) > ATTACHMENT_LIMIT:
        raise InputError(
            f"can't attach {attachment.path!r}: it has more than {ATTACHMENT_LIMIT} bytes",
            hint="Attach a smaller file.",
        )
    media_type = attachment.media_type or mimetypes.guess_type(attachment.path)[0] or _sniffed(data)
    return BinaryContent(data, media_type=media_type)


def _sniffed(data: bytes) -> str:
    """Text where it reads as text, else bytes."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"

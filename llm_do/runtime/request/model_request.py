"""A request of an agent's model: step limit, hooks, compaction, the request itself, and the events of its response.

How it is sent is in `send`, how often in `retries`, what it may cost in `reservation`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, repair_messages
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from llm_do._startup.option_names import option_name
from llm_do.errors import StepLimitError
from llm_do.models.composites import component_models, disable_client_retries
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.context.emission import busy, emit, flush_record, hold_if_draining
from llm_do.runtime.context.hooks import HookPoint
from llm_do.runtime.record.events.model_events import TextDoneEvent, ThinkingEvent
from llm_do.runtime.record.transport import OutgoingRequest
from llm_do.runtime.request.cut_answers import cut_warning
from llm_do.runtime.request.request_hooks import replace_request, replace_response
from llm_do.runtime.request.retries import RetryPolicy, send_with_retries
from llm_do.runtime.request.send import request_place
from llm_do.runtime.toolcall.gatekeeper import show_available_tools
from llm_do.runtime.tools.handoffs import HandoffSignal
from llm_do.text.surrogates import replace_surrogates_in_data

__all__ = ["EngineModel", "enabled_tools", "parsed_arguments"]

CUT = ("length", "content_filter")
"""Finish reasons of answers that aren't whole."""


class EngineModel(WrapperModel):
    """Wraps a model once, where it is built, so that each request passes through the call that makes it.

    Args:
        model: The model.
        names: The names that it was requested by; None for a model object.
    """

    def __init__(self, model: Model, names: Sequence[str] = ()) -> None:
        super().__init__(model)
        names = names or [each.model_id for each in component_models(model)]
        self.names: str | tuple[str, ...] = names[0] if len(names) == 1 else tuple(names)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request for the current call."""
        ctx = current_call()
        messages = self._whole(ctx, messages, model_request_parameters)
        ctx.run.raise_if_ended()
        await hold_if_draining(ctx)
        with busy(ctx):
            return await self._request(ctx, messages, model_settings, model_request_parameters)

    def _whole(
        self, ctx: CallContext, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        """The messages with what PydanticAI hasn't seen of a long history."""
        window = ctx.frame.window
        if window is None:
            return messages

        def prepared(history: list[ModelMessage]) -> list[ModelMessage]:
            return repair_messages(self.prepare_messages(repair_messages(history), parameters))

        return window.restore(messages, prepared)

    async def _request(
        self,
        ctx: CallContext,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        frame, run = ctx.frame, ctx.run
        if frame.handoff is not None:
            raise HandoffSignal
        _count_request(ctx)
        recording = run.recording
        if recording is not None and frame.live is not None and not run.replays:
            recording.save_messages(frame.live)
        tools = enabled_tools(run.thread.config, show_available_tools(frame.gating, model_request_parameters))
        if frame.compaction is not None:
            messages = await frame.compaction.shortened(ctx, self.wrapped, messages, tools)
        messages, model_settings = await replace_request(ctx, messages, model_settings)
        settings = disable_client_retries(self.wrapped, model_settings)
        config = ctx.runtime.config
        await flush_record(ctx, required=False)
        outcome = await send_with_retries(
            ctx,
            OutgoingRequest(self.wrapped, self.names, messages, settings, tools, _streams(ctx)),
            RetryPolicy(config.settings.max_retries, config.retry_delay),
            request_place(ctx),
        )
        frame.steps += 1
        run.steps += 1
        response = await replace_response(ctx, outcome.result())
        _emit_response(ctx, response)
        if response.finish_reason in CUT and (warning := cut_warning(response, response.model_name or "its model")):
            ctx.warn(warning)
        return response


def _streams(ctx: CallContext) -> bool:
    """Whether text is emitted as it comes: not before guards have seen it, and hooks that may replace it."""
    agent = ctx.frame.config.agent
    if (agent is not None and agent.output_guards) or ctx.frame.hooks.may_replace(HookPoint.POST_LLM_CALL):
        return False
    return ctx.run.streams_text()


def _count_request(ctx: CallContext) -> None:
    config = ctx.frame.config
    if ctx.frame.requests >= config.max_steps:
        what = "its only model request" if config.max_steps == 1 else f"all its {config.max_steps:,} model requests"
        raise StepLimitError(
            f"agent {config.name!r} used {what}",
            hint=f"Raise `max_steps` in its file, in project.json or with {option_name('--max-steps')}.",
            agent_path=ctx.path,
        )
    ctx.frame.requests += 1


def enabled_tools(thread: ThreadConfig, parameters: ModelRequestParameters) -> ModelRequestParameters:
    """What a model is sent of an agent's tools: those that are enabled on the run's thread."""
    if thread.enabled_tools is None:
        return parameters
    tools = [tool for tool in parameters.function_tools if thread.is_tool_enabled(tool.name)]
    return replace(parameters, function_tools=tools)


def _emit_response(ctx: CallContext, response: ModelResponse) -> None:
    """Emit the events of one response."""
    parts: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            parts.append(part.content)
        elif isinstance(part, ThinkingPart) and part.content:
            emit(ctx, ThinkingEvent, text=part.content)
    if text := "".join(parts):
        ctx.frame.text = text
        emit(ctx, TextDoneEvent, text=text)


def parsed_arguments(args: object) -> object:
    """A tool call's arguments as data, where they are JSON."""
    if isinstance(args, str):
        try:
            return replace_surrogates_in_data(json.loads(args or "{}"))
        except (ValueError, RecursionError):
            return args
    return args if args is not None else {}

"""One model request: hooks, budget, the request itself (streamed or not), retries, and what came of it.

Every request of every agent passes `EngineModel.request`: it is the one place that could be made a durable step.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do.errors import BudgetError, LlmDoError, StepLimitError
from llm_do.models.composites import component_models, disable_client_retries
from llm_do.models.providers.failures import explain_failure, is_transient
from llm_do.models.token_estimates import estimate_text_tokens, estimate_tokens, estimate_tool_tokens
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.context.budget import Reservation
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.context.hooks import HookPoint
from llm_do.runtime.record.emission import emit
from llm_do.runtime.record.events import RetryEvent, TextDoneEvent, TextEvent, ThinkingEvent, UsageEvent
from llm_do.runtime.record.results import Usage
from llm_do.runtime.request.cost import check_price, is_free, response_usage
from llm_do.runtime.toolcall.gatekeeper import show_available_tools
from llm_do.runtime.tools.handoffs import HandedOver
from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data, replace_surrogates_in_response

__all__ = ["EngineModel", "parsed_arguments"]

MAX_DELAY = 30.0
"""Longest pause between two tries, in seconds, when the provider names none."""

LONGEST_WAIT = 600.0
"""Seconds that a provider may ask to wait; one that asks for more has failed for good."""

UNSAID_OUTPUT = 16_384
"""Output tokens that a request is held to under a budget where its agent sets no `max_tokens`: large models refuse
numbers far above what they can produce, and parallel requests have to share what is left."""

COUNTING_TIME = 10.0
"""Seconds that a model may take to count a request's tokens; then they are estimated."""

COALESCE = 0.03
"""Seconds of a text stream that go into one event: a person sees no difference, and events cost less than chunks."""

NO_FINISH_REASON = frozenset({None, "test", "function"})
"""Providers that never say why a response ended, so that its absence tells nothing."""


class EngineModel(WrapperModel):
    """Wraps a model once, where it is built, so that each request passes through the call that makes it."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request for the current call."""
        ctx = current_call()
        frame, run = ctx.frame, ctx.run
        config = frame.config
        run.raise_if_ended()
        if frame.handoff is not None:
            raise HandedOver
        if frame.requests >= config.max_steps:
            raise StepLimitError(
                f"agent {config.name!r} used all its {config.max_steps} model requests",
                hint="Raise `max_steps` in its file, in project.json or with --max-steps.",
                agent_path=ctx.path,
            )
        frame.requests += 1
        hooks = ctx.frame.hooks
        if hooks:
            await hooks.call(HookPoint.PRE_LLM_CALL, agent=config.agent, messages=messages)
        recording = run.recording
        if recording is not None and frame.live is not None:
            recording.step(frame.live)
        sent = enabled_tools(run.thread.config, show_available_tools(frame.gating, model_request_parameters))
        if frame.compaction is not None:
            messages = await frame.compaction.shortened(ctx, self.wrapped, messages, sent)
        settings = disable_client_retries(self.wrapped, model_settings)
        response, used = await _attempts(ctx, self.wrapped, messages, settings, sent)
        if recording is not None:
            await recording.written()
        frame.steps += 1
        run.steps += 1
        _tell(ctx, response, used)
        if hooks:
            await hooks.call(HookPoint.POST_LLM_CALL, agent=config.agent, response=response)
        return response


def enabled_tools(thread: ThreadConfig, parameters: ModelRequestParameters) -> ModelRequestParameters:
    """What a model is sent of an agent's tools: those that are enabled on the run's thread."""
    if thread.enabled_tools is None:
        return parameters
    tools = [tool for tool in parameters.function_tools if thread.is_tool_enabled(tool.name)]
    return replace(parameters, function_tools=tools)


async def _attempts(
    ctx: CallContext,
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> tuple[ModelResponse, Usage]:
    """Try until a response comes, the failure isn't a passing one, or the retries are used up."""
    frame, budget = ctx.frame, ctx.run.budget
    retries = ctx.runtime.config.settings.max_retries
    in_process = is_free(model)
    check_price(budget.budget.cost_usd, model)
    said_before = frame.text
    attempt = 0
    while True:
        allowed, held = await _reserve(ctx, model, messages, settings, parameters)
        frame.held = held
        used = Usage(requests=1)
        try:
            async with ctx.runtime.shared.request_slot():
                response = await _send(ctx, model, messages, allowed, parameters)
            used = response_usage(response)
        except Exception as error:
            attempt += 1
            if not is_transient(error):
                if isinstance(error, LlmDoError):
                    raise
                raise _provider_error(error, model, ctx) from error
            asked = _asked_delay(error)
            if attempt > retries or (asked is not None and asked > LONGEST_WAIT):
                raise _provider_error(error, model, ctx) from error
            delay = _delay(attempt, asked, ctx.runtime.config.retry_delay)
            failure = error
        else:
            return replace_surrogates_in_response(response), used
        finally:
            frame.held = None
            frame.usage += used
            budget.settle(held, used, free=in_process)
        frame.text = said_before  # what has come of the answer is void
        emit(ctx, RetryEvent, attempt=attempt, delay=round(delay, 3), error=_say(failure))
        await asyncio.sleep(delay)


async def _send(
    ctx: CallContext,
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> ModelResponse:
    """The request itself; streamed when somebody hears the text as it comes."""
    if not ctx.run.streams_text():
        return await model.request(messages, settings, parameters)
    loop = asyncio.get_running_loop()
    pending: list[str] = []
    last = loop.time()
    before, ctx.frame.text = ctx.frame.text, ""
    async with model.request_stream(messages, settings, parameters) as stream:
        async for event in stream:
            if not (text := _text_of(event)):
                continue
            pending.append(text)
            now = loop.time()
            if now - last >= COALESCE:
                _say_text(ctx, pending)
                last = now
        response = stream.get()
    _say_text(ctx, pending)
    ctx.frame.text = ctx.frame.text or before
    if response.finish_reason is None and response.provider_name not in NO_FINISH_REASON and model.base_url:
        raise exceptions.ModelConnectionError(model.model_name, "the stream ended before the response was complete")
    return response


def _text_of(event: object) -> str:
    """The text that a stream's event brings."""
    if isinstance(event, PartDeltaEvent):
        return event.delta.content_delta if isinstance(event.delta, TextPartDelta) else ""
    return event.part.content if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) else ""


def _say_text(ctx: CallContext, pending: list[str]) -> None:
    """Tell of the text that has come; should the run end now, it is what it has to show."""
    if pending:
        text = replace_surrogates("".join(pending))
        pending.clear()
        ctx.frame.text += text
        emit(ctx, TextEvent, text=text)


async def _reserve(
    ctx: CallContext,
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> tuple[ModelSettings | None, Reservation]:
    """Hold the request's worst case, with `max_tokens` lowered to what the budget leaves.

    Tokens that other requests hold may come back: this one waits for them, rather than fail or be cut short.
    """
    budget = ctx.run.budget
    if not budget.counts_tokens:
        return settings, budget.reserve()
    sent = await _input_tokens(model, messages, settings, parameters)
    wanted = (settings or {}).get("max_tokens")
    while True:
        left = budget.output_left(sent)
        most = wanted or UNSAID_OUTPUT
        try:
            if left is None:
                return settings, budget.reserve(sent, wanted or 0)
            if left >= most or not budget.holds_tokens:
                allowed = max(min(most, left), 0)
                held = budget.reserve(sent, allowed)
                return merge_model_settings(settings, ModelSettings(max_tokens=allowed)), held
        except BudgetError:
            if not budget.holds_tokens:
                raise
        await budget.something_settled()


async def _input_tokens(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> int:
    """The tokens that a request sends: as its model counts them, else estimated."""
    try:
        async with asyncio.timeout(COUNTING_TIME):
            counted = await model.count_tokens(messages, settings, parameters)
    except Exception:  # noqa: BLE001 (most can't count; whether the provider answers, the request itself will tell)
        said = messages[-1].instructions or "" if isinstance(messages[-1], ModelRequest) else ""
        return estimate_tokens(messages) + estimate_tool_tokens(parameters) + estimate_text_tokens(said)
    return counted.input_tokens


def _asked_delay(error: Exception) -> float | None:
    """Seconds that the provider asks to wait; fractions too, which the standard lacks and servers send."""
    if not isinstance(error, exceptions.ModelAPIError) or error.retry_after is not None:
        return getattr(error, "retry_after", None)
    headers = error.headers if isinstance(error, exceptions.ModelHTTPError) else None
    try:
        seconds = float((headers or {}).get("retry-after", "nan"))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _delay(attempt: int, retry_after: float | None, first: float) -> float:
    """Seconds to wait: what the provider asked for, else doubling from `first` with jitter (AWS's "full jitter"
    halves collisions of clients that failed together)."""
    if retry_after is not None and retry_after >= 0:
        return retry_after
    return min(first * 2 ** (attempt - 1), MAX_DELAY) * (0.5 + random.random() / 2)


def _provider_error(error: Exception, model: Model, ctx: CallContext) -> Exception:
    """What a request's failure is called here; what PydanticAI says of a response itself stays what it is."""
    if isinstance(error, exceptions.UserError | exceptions.UnexpectedModelBehavior):
        return error
    names = [ctx.runtime.pool.name_of(each) for each in component_models(model)]
    agent = ctx.frame.config.agent
    file = agent.place.file if agent is not None and agent.place is not None else None
    told = explain_failure(error, names, agent=ctx.frame.config.name, file=file)
    told.agent_path = ctx.path
    return told


def _say(error: Exception) -> str:
    """A provider's failure in one line."""
    body = getattr(error, "body", None)
    said: Any = None
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        inner = fields.get("error", fields)
        said = cast("dict[str, Any]", inner).get("message") if isinstance(inner, dict) else inner
    text = str(said or getattr(error, "message", "") or error or type(error).__name__)
    status = getattr(error, "status_code", None)
    line = " ".join(text.split())[:300]
    return f"HTTP {status}: {line}" if status else line


def _tell(ctx: CallContext, response: ModelResponse, used: Usage) -> None:
    """Write the events of one response."""
    text: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            text.append(part.content)
        elif isinstance(part, ThinkingPart) and part.content:
            emit(ctx, ThinkingEvent, text=part.content)
    if whole := "".join(text):
        ctx.frame.text = whole
        emit(ctx, TextDoneEvent, text=whole)
    usage = used.to_dict()
    del usage["tool_calls"]
    emit(ctx, UsageEvent, usage=usage)


def parsed_arguments(args: object) -> object:
    """A tool call's arguments as data, where they are JSON."""
    if isinstance(args, str):
        try:
            return replace_surrogates_in_data(json.loads(args or "{}"))
        except (ValueError, RecursionError):
            return args
    return args if args is not None else {}

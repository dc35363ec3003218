"""One model request: hooks, budget, the request itself (streamed or not), retries, and what came of it.

Every request of every agent passes `EngineModel.request`: it is the one place that could be made a durable step.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, cast

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
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

from llm_do.errors import LlmDoError, ProviderError, StepLimitError
from llm_do.runtime.context import CallContext, current_call
from llm_do.runtime.events import RetryEvent, TextDoneEvent, TextEvent, ThinkingEvent, UsageEvent
from llm_do.runtime.hooks import HookPoint
from llm_do.runtime.limits import Reservation
from llm_do.runtime.results import Usage

__all__ = ["EngineModel", "passing"]

MAX_DELAY = 30.0
"""Longest pause between two tries, in seconds, when the provider names none."""

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
        if frame.requests >= config.max_steps:
            raise StepLimitError(
                f"agent {config.name!r} used all its {config.max_steps} model requests",
                hint="Raise `max_steps` in its file, in project.json or with --max-steps.",
                agent_path=ctx.path,
            )
        frame.requests += 1
        hooks = ctx.hooks
        if hooks:
            await hooks.call(HookPoint.PRE_LLM_CALL, agent=config.agent, messages=messages)
        response = await _attempts(ctx, self.wrapped, messages, model_settings, model_request_parameters)
        frame.steps += 1
        run.steps += 1
        _tell(ctx, response)
        if hooks:
            await hooks.call(HookPoint.POST_LLM_CALL, agent=config.agent, response=response)
        return response


async def _attempts(
    ctx: CallContext,
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> ModelResponse:
    """Try until a response comes, the failure isn't a passing one, or the retries are used up."""
    frame, budget = ctx.frame, ctx.run.budget
    retries = ctx.runtime.config.settings.max_retries
    attempt = 0
    while True:
        settings, held = _reserve(ctx, messages, settings)
        frame.held = held
        used = Usage(requests=1)
        try:
            async with ctx.runtime.request_slot():
                response = await _send(ctx, model, messages, settings, parameters)
            used = Usage(
                requests=1, input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens
            )
        except Exception as error:
            attempt += 1
            if not passing(error):
                if isinstance(error, LlmDoError):
                    raise
                raise _provider_error(error, model, ctx) from error
            if attempt > retries:
                raise _provider_error(error, model, ctx) from error
            delay = _delay(attempt, getattr(error, "retry_after", None), ctx.runtime.config.retry_delay)
            failure = error
        else:
            return response
        finally:
            frame.held = None
            frame.usage += used
            budget.settle(held, used)
        ctx.emit(RetryEvent, attempt=attempt, delay=round(delay, 3), error=_say(failure))
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
    async with model.request_stream(messages, settings, parameters) as stream:
        async for event in stream:
            text = ""
            if isinstance(event, PartDeltaEvent):
                if isinstance(event.delta, TextPartDelta):
                    text = event.delta.content_delta
            elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                text = event.part.content
            if not text:
                continue
            pending.append(text)
            now = loop.time()
            if now - last >= COALESCE:
                ctx.emit(TextEvent, text="".join(pending))
                pending.clear()
                last = now
        response = stream.get()
    if pending:
        ctx.emit(TextEvent, text="".join(pending))
    if response.finish_reason is None and response.provider_name not in NO_FINISH_REASON and model.base_url:
        raise exceptions.ModelConnectionError(model.model_name, "the stream ended before the response was complete")
    return response


def _reserve(
    ctx: CallContext, messages: list[ModelMessage], settings: ModelSettings | None
) -> tuple[ModelSettings | None, Reservation]:
    """Hold the request's worst case, with `max_tokens` lowered to what the budget leaves."""
    budget = ctx.run.budget
    if not budget.counts_tokens:
        return settings, budget.reserve()
    sent = _estimate_tokens(messages)
    wanted = (settings or {}).get("max_tokens")
    left = budget.output_left(sent)
    if left is None:
        return settings, budget.reserve(sent, wanted or 0)
    allowed = max(left, 0) if wanted is None else max(min(wanted, left), 0)
    held = budget.reserve(sent, allowed)
    lowered = ModelSettings(max_tokens=allowed)
    return merge_model_settings(settings, lowered), held


def _estimate_tokens(messages: list[ModelMessage]) -> int:
    """Tokens of a history, by a common rule of thumb: four characters of English are about one token."""
    return sum(len(str(part)) for message in messages for part in message.parts) // 4 + 1


def passing(error: BaseException) -> bool:
    """Whether a model request that failed so may succeed if it is made again.

    Args:
        error: What the request raised.

    Returns:
        True for rate limits, overload, server errors, timeouts and broken connections; False for bad requests,
        missing keys, used-up quotas and everything that isn't the provider's.
    """
    if isinstance(error, exceptions.ModelHTTPError):
        return error.status_code in (408, 425, 429) or error.status_code >= 500
    if isinstance(
        error, exceptions.ModelRateLimitError | exceptions.ModelServerError | exceptions.ModelConnectionError
    ):
        return True
    if isinstance(error, exceptions.ModelAPIError):
        return isinstance(error, exceptions.ModelUnavailableError)
    if isinstance(error, LlmDoError):
        return False
    # A stream that breaks may raise the HTTP client's own error; both clients in use name theirs alike.
    return any(base.__name__ in ("TransportError", "APIConnectionError") for base in type(error).__mro__)


def _delay(attempt: int, retry_after: float | None, first: float) -> float:
    """Seconds to wait: what the provider asked for, else doubling from `first` with jitter (AWS's "full jitter"
    halves collisions of clients that failed together)."""
    if retry_after is not None and retry_after >= 0:
        return retry_after
    return min(first * 2 ** (attempt - 1), MAX_DELAY) * (0.5 + random.random() / 2)


def _provider_error(error: Exception, model: Model, ctx: CallContext) -> Exception:
    """What a request's failure is called here; an error that isn't the provider's stays what it is."""
    if not isinstance(error, exceptions.ModelAPIError) and not passing(error):
        return error
    status = getattr(error, "status_code", None)
    return ProviderError(
        f"model {model.model_name!r} failed: {_say(error)}",
        hint=_advice(error),
        agent_path=ctx.path,
        status_code=status,
    )


def _advice(error: Exception) -> str:
    if isinstance(error, exceptions.ModelAuthenticationError):
        return "Check the provider's key in the environment."
    if isinstance(error, exceptions.ModelNotFoundError):
        return "Check the model's name; `llm-do models` lists what could be used."
    return "Try again later, or name another model with --model."


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


def _tell(ctx: CallContext, response: ModelResponse) -> None:
    """Write the events of one response."""
    text: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            text.append(part.content)
        elif isinstance(part, ThinkingPart) and part.content:
            ctx.emit(ThinkingEvent, text=part.content)
    if whole := "".join(text):
        ctx.frame.text = whole
        ctx.emit(TextDoneEvent, text=whole)
    usage = response.usage
    ctx.emit(
        UsageEvent,
        usage={
            "requests": 1,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    )


def arguments_of(args: object) -> object:
    """A tool call's arguments as data, where they are JSON."""
    if isinstance(args, str):
        try:
            return json.loads(args or "{}")
        except ValueError:
            return args
    return args if args is not None else {}

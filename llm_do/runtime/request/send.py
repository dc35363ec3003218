"""The one way out to a model: every attempt of every request passes `send`, whoever makes it.

What a request may cost is reserved before, by `reserve` or by the caller; when it is made again is in `retries`. A
session's transport may record requests or answer them without a model; nothing else knows about it.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

from llm_do.errors import LlmDoError
from llm_do.models.composites import can_stream, component_models
from llm_do.models.providers.failures import unread_answer
from llm_do.runtime.context.emission import emit, end_run
from llm_do.runtime.record.events.model_events import ModelRequestEvent, TextEvent, UsageEvent
from llm_do.runtime.record.exchanges import RequestPlace
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.transport import Answer
from llm_do.runtime.request.answer_texts import check_response, check_text, replace_surrogates_in_response
from llm_do.runtime.request.cost import is_free
from llm_do.runtime.request.request_step import request_step
from llm_do.runtime.request.sent_attempt import SentAttempt
from llm_do.runtime.request.unreported_usage import (
    suppress_count_warnings,
    usage_of_cut_stream,
    usage_of_response,
    warn_of_estimate,
)
from llm_do.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from llm_do.runtime.context.budget import Reservation
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.exchanges import Purpose
    from llm_do.runtime.record.transport import OutgoingRequest

__all__ = ["request_place", "send"]

COALESCE = 0.03
"""Seconds of a text stream that go into one event: a person sees no difference, and events cost less than chunks."""

NO_FINISH_REASON = frozenset({None, "test", "function"})
"""Providers that never say why a response ended, so that its absence means nothing."""


async def send(ctx: CallContext, request: OutgoingRequest, held: Reservation, place: RequestPlace) -> RequestOutcome:
    """Make one attempt of a request, for the call `ctx`; what was held of the budget is settled however it ends."""
    frame, transport = ctx.frame, ctx.runtime.config.transport
    if (messages := frame.sendable.of(request.messages)) is not request.messages:
        request = replace(request, messages=messages)
    frame.held = held
    used = Usage(requests=1)
    text = _StreamedText(ctx) if request.streams else None
    model = _model_label(ctx, request)
    made = {
        "model": model,
        "request": place.number,
        "attempt": place.attempt,
        "purpose": place.purpose,
    }
    attempt = SentAttempt(ctx, request, place)
    sent = await attempt.read()
    answer: Answer | None = None
    emit(ctx, ModelRequestEvent, **made)
    step = request_step(ctx, request, place, sent)
    try:
        answer = await step.begin(held) if step is not None else None
        if answer is None:
            async with ctx.runtime.shared.request_slot():
                ask = partial(_ask, request, text)
                if transport is None:
                    answer = await ask()
                else:
                    answer = await transport.send(place, request, ask, text.add if text is not None else None)
        used = answer.outcome.usage
        if text is not None:
            text.flush()
        warn_of_estimate(ctx, request, answer.outcome)
    except LlmDoError as error:
        # A request that can't be carried ends the run, whatever its callers catch; it wasn't made.
        used, attempt = Usage(), None
        raise end_run(ctx, error) from error
    finally:
        if text is not None:
            text.end()
        frame.held = None
        frame.usage += used
        if attempt is not None and not (step is not None and step.replayed):
            attempt.keep(model, answer, used, text.so_far if text is not None else "")
        usage = used.to_dict()
        del usage["tool_calls"]
        emit(ctx, UsageEvent, usage=usage, **made)
        ctx.run.budget.settle(held, used, free=is_free(request.model))
    assert answer is not None
    if step is not None:
        step.finish(answer)
    return answer.outcome


def request_place(ctx: CallContext, purpose: Purpose = "step") -> RequestPlace:
    """Where the current request of a call is made."""
    frame = ctx.frame
    return RequestPlace(ctx.run_id, ctx.call_id, ctx.path, frame.config.name, frame.requests, purpose=purpose)


def _model_label(ctx: CallContext, request: OutgoingRequest) -> str:
    """The model's name as the project writes it: the path of a script is relative to the project."""
    name = request.name if isinstance(request.name, str) else ", ".join(request.name)
    return name.replace(f"{ctx.project.root}{os.sep}", "")


async def _ask(request: OutgoingRequest, text: _StreamedText | None) -> Answer:
    """Ask the model."""
    suppress_count_warnings()
    try:
        answered = await (_request(request) if text is None else _stream(request, text))
        response = check_response(answered, _component_name(request))
        outcome = RequestOutcome(usage_of_response(request, response), replace_surrogates_in_response(response))
        return Answer(outcome, first_token=text.first if text is not None else None)
    except Exception as raised:  # noqa: BLE001 (how an attempt ended is a value)
        error = unread_answer(raised, request.name) or raised
        used = Usage(requests=1) if text is None else usage_of_cut_stream(request, text.so_far)
        outcome = RequestOutcome(used, failure=RequestFailure.of(error), cause=error)
        return Answer(outcome) if text is None else Answer(outcome, text.so_far, text.first)


async def _request(request: OutgoingRequest) -> ModelResponse:
    return await request.model.request(request.messages, request.settings, request.parameters)


async def _stream(request: OutgoingRequest, text: _StreamedText) -> ModelResponse:
    """The request, its text emitted as it comes, or all at once where the model can't stream."""
    if can_stream(request.model):
        try:
            return await _streamed(request, text)
        except NotImplementedError:
            if text.so_far:
                raise
    response = await _request(request)
    for part in response.parts:
        if isinstance(part, TextPart):
            text.add(check_text(part.content, _component_name(request)))
    return response


async def _streamed(request: OutgoingRequest, text: _StreamedText) -> ModelResponse:
    """A streamed request, which is complete if its provider says so."""
    model, name = request.model, _component_name(request)
    async with model.request_stream(request.messages, request.settings, request.parameters) as stream:
        async for event in stream:
            if part := _text_of(event):
                text.add(check_text(part, name))
        response = stream.get()
    if not _says_why_it_ended(response) and model.base_url:
        raise exceptions.ModelConnectionError(name, "the stream ended before the response was complete")
    return response


def _component_name(request: OutgoingRequest) -> str:
    return component_models(request.model)[0].model_name


def _says_why_it_ended(response: ModelResponse) -> bool:
    """Whether a response has a finish reason, be it one that PydanticAI doesn't know, or none can be expected."""
    if response.finish_reason is not None or response.provider_name in NO_FINISH_REASON:
        return True
    return bool((response.provider_details or {}).get("finish_reason"))


def _text_of(event: object) -> str:
    """The text that a stream's event brings."""
    if isinstance(event, PartDeltaEvent):
        return event.delta.content_delta if isinstance(event.delta, TextPartDelta) else ""
    return event.part.content if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) else ""


class _StreamedText:
    """The text of one attempt as it comes, emitted in events; if the run ends now, it is the partial output."""

    def __init__(self, ctx: CallContext) -> None:
        self._ctx = ctx
        self._before, ctx.frame.text = ctx.frame.text, ""
        self._pending: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self.first: float | None = None

    @property
    def so_far(self) -> str:
        """The text that has come."""
        return self._ctx.frame.text + "".join(self._pending)

    def add(self, text: str) -> None:
        """Add what has come; it is emitted at once if the last event was long enough ago."""
        if self.first is None:
            self.first = time.time()
        self._pending.append(text)
        now = self._loop.time()
        if now - self._last >= COALESCE:
            self.flush()
            self._last = now

    def flush(self) -> None:
        """Emit what hasn't been emitted."""
        if self._pending:
            text = replace_surrogates("".join(self._pending))
            self._pending.clear()
            self._ctx.frame.text += text
            emit(self._ctx, TextEvent, text=text)

    def end(self) -> None:
        """Emit the rest; an attempt without text leaves the text before it."""
        self.flush()
        self._ctx.frame.text = self._ctx.frame.text or self._before

"""The one way out to a model: every attempt of every request passes `send`, whoever makes it.

What a request may cost is reserved before, by `reserve` or by the caller; when it is made again is in `retries`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model, ModelRequestParameters

from llm_do._startup.frozen import frozen
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events import TextEvent
from llm_do.runtime.record.results import Usage
from llm_do.runtime.request.cost import is_free, response_usage
from llm_do.runtime.request.request_outcome import RequestFailure, RequestOutcome
from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_response

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

    from llm_do.runtime.context.budget import Reservation
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["OutgoingRequest", "send"]

COALESCE = 0.03
"""Seconds of a text stream that go into one event: a person sees no difference, and events cost less than chunks."""

NO_FINISH_REASON = frozenset({None, "test", "function"})
"""Providers that never say why a response ended, so that its absence means nothing."""


@frozen
class OutgoingRequest:
    """What is sent to a model.

    Args:
        model: The model.
        messages: The history.
        settings: The model settings.
        parameters: Tools and output schema.
        streams: Whether the text is emitted as it comes.
    """

    model: Model
    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    streams: bool = False


async def send(ctx: CallContext, request: OutgoingRequest, held: Reservation) -> RequestOutcome:
    """Make one attempt of a request, for the call `ctx`; what was held of the budget is settled however it ends."""
    frame = ctx.frame
    frame.held = held
    used = Usage(requests=1)
    try:
        async with ctx.runtime.shared.request_slot():
            response = await (_stream(ctx, request) if request.streams else _request(request))
        used = response_usage(response)
        return RequestOutcome(used, replace_surrogates_in_response(response))
    except Exception as error:  # noqa: BLE001 (how an attempt ended is a value)
        return RequestOutcome(used, failure=RequestFailure.of(error), cause=error)
    finally:
        frame.held = None
        frame.usage += used
        ctx.run.budget.settle(held, used, free=is_free(request.model))


async def _request(request: OutgoingRequest) -> ModelResponse:
    return await request.model.request(request.messages, request.settings, request.parameters)


async def _stream(ctx: CallContext, request: OutgoingRequest) -> ModelResponse:
    """The request, its text emitted as it comes."""
    loop = asyncio.get_running_loop()
    pending: list[str] = []
    last = loop.time()
    model, frame = request.model, ctx.frame
    before, frame.text = frame.text, ""
    async with model.request_stream(request.messages, request.settings, request.parameters) as stream:
        async for event in stream:
            if not (text := _text_of(event)):
                continue
            pending.append(text)
            now = loop.time()
            if now - last >= COALESCE:
                _emit_text(ctx, pending)
                last = now
        response = stream.get()
    _emit_text(ctx, pending)
    frame.text = frame.text or before
    if response.finish_reason is None and response.provider_name not in NO_FINISH_REASON and model.base_url:
        raise exceptions.ModelConnectionError(model.model_name, "the stream ended before the response was complete")
    return response


def _text_of(event: object) -> str:
    """The text that a stream's event brings."""
    if isinstance(event, PartDeltaEvent):
        return event.delta.content_delta if isinstance(event.delta, TextPartDelta) else ""
    return event.part.content if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) else ""


def _emit_text(ctx: CallContext, pending: list[str]) -> None:
    """Emit the text that has come; if the run ends now, it is the partial output."""
    if pending:
        text = replace_surrogates("".join(pending))
        pending.clear()
        ctx.frame.text += text
        emit(ctx, TextEvent, text=text)

"""One attempt of a request for the run's record: what is sent is read before it, the exchange is kept after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic_ai.messages import BaseToolCallPart

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.canonical_messages import MANY, is_large_message
from llm_do.runtime.record.exchanges import Exchange
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
from llm_do.runtime.record.sent_request import read_request
from llm_do.runtime.record.transport import Answer

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.exchanges import Purpose, RequestPlace
    from llm_do.runtime.record.results import Usage
    from llm_do.runtime.record.sent_request import RequestReader, SentRequest
    from llm_do.runtime.record.transport import OutgoingRequest

__all__ = ["SentAttempt"]


class SentAttempt:
    """An attempt that has begun; it keeps nothing if the run isn't recorded or its exchanges aren't.

    Args:
        ctx: The call.
        request: What is sent.
        place: Where it is made.
    """

    def __init__(self, ctx: CallContext, request: OutgoingRequest, place: RequestPlace) -> None:
        self._recording = ctx.run.recording
        self._place = place
        self._request = request
        self._begun = time.time()
        self._reader = _reader(ctx, place.purpose)
        self._sent: SentRequest | None = None

    async def read(self) -> SentRequest | None:
        """Read what is sent, in canonical form; None if exchanges aren't kept."""
        if self._reader is not None:
            messages = self._request.messages
            new = len(messages) - self._reader.message_count
            if messages and any(map(is_large_message, messages[-max(new, 1) :])):
                self._sent = await run_in_worker(read_request, self._reader, self._request)
                return self._sent
            if new > MANY:
                await run_in_worker(self._reader.remember, messages)
            self._sent = read_request(self._reader, self._request)
        return self._sent

    def keep(self, model: str, answer: Answer | None, usage: Usage, partial: str) -> None:
        """Add the exchange to the run's record.

        Args:
            model: The model, as events name it.
            answer: What came back; None if the request was cancelled.
            usage: What it used.
            partial: The text of an answer that broke off.
        """
        if self._recording is None or self._reader is None or self._sent is None:
            return
        if answer is None:
            failure = RequestFailure("CancelledError", "the request was cancelled before its answer was complete")
            answer = Answer(RequestOutcome(usage, failure=failure), partial)
        own, settings = self._request.own_settings, self._request.settings
        # The clock may have been set back meanwhile.
        first = None if answer.first_token is None else max(answer.first_token, self._begun)
        exchange = Exchange(
            self._place,
            model,
            self._sent,
            answer.outcome,
            self._begun,
            max(time.time(), first or self._begun),
            first,
            answer.partial,
            self._numbered(answer.outcome.response),
            settings.get("max_tokens") if own is not None and settings is not None else None,
            self._reader.setups.facts_of(self._request.model),
        )
        self._recording.add_exchange(exchange)

    def _numbered(self, response: ModelResponse | None) -> tuple[str, ...]:
        if response is None or self._reader is None:
            return ()
        return tuple(
            self._reader.number(part.tool_call_id) for part in response.parts if isinstance(part, BaseToolCallPart)
        )


def _reader(ctx: CallContext, purpose: Purpose) -> RequestReader | None:
    """The reader of a call's requests."""
    recording, readers = ctx.run.recording, ctx.frame.readers
    if recording is None:
        return None
    reader = readers.get(purpose)
    if reader is None and (reader := recording.request_reader()) is not None:
        readers[purpose] = reader
    return reader

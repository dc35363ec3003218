"""The answers of chat requests as the SDK's types, repaired first; a cut stream differs from a complete one."""

from __future__ import annotations

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, cast

import httpx2
from openai import APIConnectionError, APIError, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from llm_do.models.providers.chat.answers import ChunkMender, UnusableAnswerError, error_in, mend_completion
from llm_do.models.providers.provider_words import provider_words

__all__ = ["ChatStream", "is_document", "read_completion", "read_document"]

END = "[DONE]"

DRAINING = 0.2
"""Seconds to wait for the end of a response after its last event: then its connection can be used again."""


def read_completion(data: object, model: str, request: Callable[[], httpx2.Request]) -> ChatCompletion:
    """Return a complete answer; what is an error, or no answer, raises the SDK's error with the provider's words.

    Args:
        data: The answer.
        model: The name of the model that was asked.
        request: Makes the request that an error names.
    """
    if isinstance(data, str):  # JSON under the name of another media type, or no JSON at all
        with suppress(ValueError, RecursionError):
            data = json.loads(data)
    try:
        return ChatCompletion.model_construct(**mend_completion(data, model))
    except UnusableAnswerError as error:
        raise APIError(error.message, request(), body=error.body) from None


class ChatStream(AsyncStream[ChatCompletionChunk]):
    """The chunks of one answer.

    An answer is complete if its server says so, with any finish reason or with `[DONE]`; otherwise it was cut.
    A server that doesn't stream sends one JSON document, which becomes the chunks that it would have streamed.
    """

    async def __stream__(self) -> AsyncIterator[ChatCompletionChunk]:
        mender = ChunkMender()
        try:
            events = self._document() if is_document(self.response) else self._events(mender)
            async for data in events:
                for chunk in mender.mend(data):
                    yield ChatCompletionChunk.model_construct(**chunk)
            for chunk in mender.end():
                yield ChatCompletionChunk.model_construct(**chunk)
        finally:
            await self.response.aclose()

    async def _events(self, mender: ChunkMender) -> AsyncIterator[dict[str, Any]]:
        self._decoder = cast("Any", _MarkRemover(self._decoder))
        request, events = self.response.request, self._iter_events()
        async for event in events:
            if event.data.startswith(END):
                with suppress(TimeoutError, APIError):
                    async with asyncio.timeout(DRAINING):
                        async for _ in events:
                            pass
                return
            if event.data.strip():
                yield _event_data(event.event, event.data, request)
        if not mender.is_finished:
            raise APIConnectionError(message="the stream ended before the response was complete", request=request)

    async def _document(self) -> AsyncIterator[dict[str, Any]]:
        await self.response.aread()
        yield read_completion(self.response.text, "", lambda: self.response.request).to_dict(mode="json")


class _MarkRemover:
    """Decodes events as the SDK's decoder does, without the mark that a stream may begin with."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def aiter_bytes(self, parts: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        return self._decoder.aiter_bytes(_without_mark(parts))


async def _without_mark(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Return the bytes of a stream without the mark that it may begin with, which the SDK takes for part of a field."""
    start = b""
    async for part in parts:
        start += part
        if len(start) >= len(BOM_UTF8) or not BOM_UTF8.startswith(start):
            yield start.removeprefix(BOM_UTF8)
            break
    else:
        yield start
    async for part in parts:
        yield part


def is_document(response: httpx2.Response) -> bool:
    """Whether the answer to a request for a stream is one document."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.endswith(("json", "html", "xml"))


async def read_document(response: httpx2.Response) -> object:
    """Return the document that answers a request for a stream: its data, or its text if that isn't JSON."""
    await response.aread()
    with suppress(ValueError, RecursionError):
        return json.loads(response.text)
    return response.text


def _event_data(name: str | None, text: str, request: httpx2.Request) -> dict[str, Any]:
    """Return an event's data; an error in the stream raises the SDK's error with the provider's words."""
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):
        raise APIError(provider_words(text), request, body=text) from None
    error = data if name == "error" else error_in(data)
    if error or not isinstance(data, dict):
        raise APIError(provider_words(error or data) or "the stream ended with an error", request, body=error or data)
    return cast("dict[str, Any]", data)

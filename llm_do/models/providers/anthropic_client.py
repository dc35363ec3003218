"""An Anthropic client whose answers are checked: one with status 200 that is none raises an error with its words."""

from __future__ import annotations

from functools import cached_property
from json import JSONDecodeError
from typing import Any, cast

from anthropic import APIStatusError, AsyncAnthropic, AsyncStream
from anthropic.types.beta import BetaMessage
from httpx2 import Request, Response
from pydantic_ai.exceptions import ModelAPIError

from llm_do.models.providers.chat.answers import error_in
from llm_do.models.providers.chat.stream import is_document, read_document
from llm_do.models.providers.provider_words import document_words, provider_words

__all__ = ["CheckedAnthropic"]


class _Messages:
    """The messages resource, whose `create` checks that the answer is one; all other attributes are the SDK's."""

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resource(), name)

    def _resource(self) -> Any:
        from anthropic.resources.beta.messages import AsyncMessages

        return AsyncMessages(self._client)

    async def create(self, **options: Any) -> Any:
        model = str(options.get("model"))
        try:
            answer: object = await self._resource().create(**options)
        except JSONDecodeError as error:
            answer = error.doc
        if isinstance(answer, AsyncStream):
            await _check_stream(cast("AsyncStream[Any]", answer), model)
        elif not isinstance(answer, BetaMessage) or not isinstance(cast("object", answer.content), list):
            raise _error(answer.to_dict() if isinstance(answer, BetaMessage) else answer, model)
        return cast("object", answer)


async def _check_stream(stream: AsyncStream[Any], model: str) -> None:
    """Read an answer that isn't a stream."""
    response = stream.response
    if not is_document(response):
        return
    data = await read_document(response)
    await stream.close()
    if isinstance(data, dict) and isinstance(cast("dict[str, Any]", data).get("content"), list):
        raise NotImplementedError("the server can't stream")
    raise _error(cast("object", data), model)


def _error(answer: object, model: str) -> Exception:
    words = document_words(answer) if isinstance(answer, str) else provider_words(answer) or "the answer has no content"
    if isinstance(error_in(answer), dict):  # its type says what kind of failure it is
        request = Request("POST", "http://provider.invalid/v1/messages")
        return APIStatusError(words, response=Response(200, request=request), body=answer)
    return ModelAPIError(model, words)


class _Beta:
    """The beta resource with checked messages; all other attributes are the SDK's."""

    def __init__(self, client: AsyncAnthropic) -> None:
        self._client = client
        self.messages = _Messages(client)

    def __getattr__(self, name: str) -> Any:
        from anthropic.resources.beta import AsyncBeta

        return getattr(AsyncBeta(self._client), name)


class CheckedAnthropic(AsyncAnthropic):
    """The SDK's client with checked messages."""

    @cached_property
    def beta(self) -> _Beta:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Beta(self)

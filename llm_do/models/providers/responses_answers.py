"""Answers of OpenAI's Responses protocol that are none: each raises the SDK's error with the provider's words."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any, cast

from httpx2 import Request
from openai import APIError, AsyncOpenAI, AsyncStream
from openai.types.responses import Response

from llm_do.models.providers.chat.answers import error_in
from llm_do.models.providers.chat.stream import is_document, read_document
from llm_do.models.providers.provider_words import document_words, provider_words

__all__ = ["CheckedResponses"]


class CheckedResponses:
    """The responses resource, whose `create` checks that the answer is one; all other attributes are the SDK's."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resource(), name)

    def _resource(self) -> Any:
        from openai.resources.responses import AsyncResponses

        return AsyncResponses(self._client)

    async def create(self, **options: Any) -> Any:
        try:
            answer: object = await self._resource().create(**options)
        except JSONDecodeError as error:
            answer = error.doc
        if isinstance(answer, AsyncStream):
            await _check_stream(cast("AsyncStream[Any]", answer))
            return cast("AsyncStream[Any]", answer)
        return _checked(answer, Request("POST", f"{self._client.base_url}/responses"))


def _checked(answer: object, request: Request) -> Response:
    if not isinstance(answer, Response):
        raise APIError(_words(answer), request, body=None)
    error = cast("object", answer.error)
    if isinstance(error, str):
        raise APIError(error, request, body=error)
    if error is None and not isinstance(cast("object", answer.output), list):
        raise APIError("the answer has no output", request, body=None)
    return answer


async def _check_stream(stream: AsyncStream[Any]) -> None:
    """Read an answer that isn't a stream."""
    response = stream.response
    if not is_document(response):
        return
    data = await read_document(response)
    await stream.close()
    error = error_in(data)
    if isinstance(data, dict) and isinstance(cast("dict[str, Any]", data).get("output"), list) and not error:
        raise NotImplementedError("the server can't stream")
    raise APIError(_words(cast("object", data)), response.request, body=error)


def _words(answer: object) -> str:
    return document_words(answer) if isinstance(answer, str) else provider_words(answer) or "the answer has no output"

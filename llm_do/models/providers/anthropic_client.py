"""An Anthropic client whose answers are checked: one with status 200 that is none raises an error with its words.

Ids of tool calls that other providers' models have chosen are sent as ones that Anthropic's API takes.
"""

from __future__ import annotations

import re
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
from llm_do.models.sendable_history import substitute_id

__all__ = ["CheckedAnthropic"]


_ODD_ID = re.compile(r"[^A-Za-z0-9_-]")
_ID_KEYS = {"tool_use": "id", "tool_result": "tool_use_id"}


class _Messages:
    """The messages resource, whose `create` checks that the answer is one; other attributes are the SDK's."""

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
            answer: object = await self._resource().create(**_with_plain_ids(options))
        except JSONDecodeError as error:
            answer = error.doc
        if isinstance(answer, AsyncStream):
            await _check_stream(cast("AsyncStream[Any]", answer), model)
        elif not isinstance(answer, BetaMessage) or not isinstance(cast("object", answer.content), list):
            raise _error(answer.to_dict() if isinstance(answer, BetaMessage) else answer, model)
        return cast("object", answer)

    async def count_tokens(self, **options: Any) -> Any:
        return await self._resource().count_tokens(**_with_plain_ids(options))


def _with_plain_ids(options: dict[str, Any]) -> dict[str, Any]:
    """A request's options with ids of tool calls that Anthropic takes, which other providers' needn't be."""
    return {**options, "messages": [_with_plain_id(message) for message in options["messages"]]}


def _with_plain_id(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, list):
        return message
    blocks = cast("list[dict[str, Any]]", content)
    odd = {
        at: key
        for at, block in enumerate(blocks)
        if (key := _ID_KEYS.get(block["type"])) and _ODD_ID.search(block[key])
    }
    if not odd:
        return message
    return {
        **message,
        "content": [
            {**block, odd[at]: substitute_id(block[odd[at]])} if at in odd else block for at, block in enumerate(blocks)
        ],
    }


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

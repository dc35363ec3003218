"""An OpenAI client that posts the bodies of chat requests unchanged, and mends their answers.

For each request the SDK walks through the entire history to transform types that a chat body doesn't contain, which is
most of a request's cost in a long run. A test compares the requests of both clients.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from httpx2 import AsyncClient, Request
from openai import AsyncOpenAI, NotGiven, Omit

from llm_do.models.providers.chat.stream import ChatStream, read_completion

if TYPE_CHECKING:
    from llm_do.models.providers.responses_answers import CheckedResponses

__all__ = ["LeanOpenAI", "lean_copy"]

PATH = "/chat/completions"


class LeanCompletions:
    """Chat completions that post their body unchanged and mend the answer; all other attributes are the SDK's.

    It doesn't inherit from the SDK's class, whose unused streaming helpers would take 2% of a short run.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    def _request(self) -> Request:
        """The request that an error of an answer names; making one takes longer than reading the answer."""
        return Request("POST", f"{self._client.base_url}{PATH}")

    def __getattr__(self, name: str) -> Any:
        from openai.resources.chat import AsyncCompletions

        return getattr(AsyncCompletions(self._client), name)

    async def create(
        self,
        *,
        extra_headers: Mapping[str, str | Omit] | None = None,
        extra_query: Mapping[str, object] | None = None,
        extra_body: object | None = None,
        timeout: Any = None,  # noqa: ASYNC109
        stream: Any = False,
        **body: Any,
    ) -> Any:
        options: Any = {"security": {"bearer_auth": True}}
        if extra_headers is not None:
            options["headers"] = extra_headers
        if extra_query is not None:
            options["params"] = extra_query
        if extra_body is not None:
            options["extra_json"] = extra_body
        if timeout is not None and not isinstance(timeout, NotGiven | Omit):
            options["timeout"] = timeout
        streaming = stream is True
        sent: Mapping[str, Any] = {key: value for key, value in body.items() if not isinstance(value, Omit | NotGiven)}
        post: Callable[..., Awaitable[Any]] = self._client.post
        try:
            answer = await post(
                PATH,
                body={**sent, "stream": streaming},
                options=options,
                cast_to=object,
                stream=streaming,
                stream_cls=ChatStream,
            )
        except JSONDecodeError as error:
            answer = error.doc
        if streaming:
            return answer
        return read_completion(answer, str(body.get("model") or ""), self._request)


class LeanChat:
    """The chat resource with lean completions; all other attributes are the SDK's."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client
        self.completions = LeanCompletions(client)

    def __getattr__(self, name: str) -> Any:
        from openai.resources.chat import AsyncChat

        return getattr(AsyncChat(self._client), name)


class LeanOpenAI(AsyncOpenAI):
    """The SDK's client, with chat completions that post their body unchanged; answers are mended or checked."""

    @cached_property
    def chat(self) -> LeanChat:  # pyright: ignore[reportIncompatibleMethodOverride]
        return LeanChat(self)

    @cached_property
    def responses(self) -> CheckedResponses:  # pyright: ignore[reportIncompatibleMethodOverride]
        from llm_do.models.providers.responses_answers import CheckedResponses

        return CheckedResponses(self)


def lean_copy(client: AsyncOpenAI, http_client: AsyncClient) -> LeanOpenAI:
    """Return a lean client with the address, key and headers of another, for the other providers of this protocol."""
    headers = {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
    return LeanOpenAI(
        base_url=client.base_url,
        api_key=client.api_key,
        default_headers=headers,
        http_client=http_client,
        max_retries=0,
    )

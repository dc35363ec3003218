"""PydanticAI providers of our own. Building models from names is `llm_do.models`' business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.providers.openai import OpenAIProvider

if TYPE_CHECKING:
    import httpx2

__all__ = ["OpenAICompatibleProvider"]


class OpenAICompatibleProvider(OpenAIProvider):
    """A server that speaks OpenAI's protocol, under a name of its own.

    Args:
        base_url: Its address, such as `http://localhost:8000/v1`.
        api_key: Its key; most servers of one's own need none.
        name: Recorded in messages as the provider's name.
        http_client: A client to send requests with; it stays the caller's to close.

    Example:
        >>> OpenAICompatibleProvider("http://localhost:8000/v1", name="lab").name
        'lab'
    """

    def __init__(
        self,
        base_url: str,
        api_key: str = "unused",
        name: str = "openai-compatible",
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        super().__init__(base_url=base_url, api_key=api_key, http_client=http_client)
        self.client.max_retries = 0
        self._name = name

    @property
    def name(self) -> str:
        return self._name

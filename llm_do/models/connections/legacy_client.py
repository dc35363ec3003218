"""HTTP clients for SDKs that still use `httpx`: what they read of an answer is bounded as in `http_clients`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpx

from llm_do.errors import ModelUnavailableError
from llm_do.models.connections.answer_bounds import (
    ENCODINGS,
    LONGEST_ANSWER,
    AnswerBoundError,
    bounded_stream,
    check_encoding,
    too_slow,
)
from llm_do.models.connections.http_clients import CONNECT_TIMEOUT, REQUEST_TIMEOUT, proxy_for, shared_ssl_context

if TYPE_CHECKING:
    import ssl

__all__ = ["legacy_client"]


def legacy_client(base_url: str, *, timeout: float = REQUEST_TIMEOUT) -> httpx.AsyncClient:
    """Create a client for one provider's address; proxies and certificates come from the environment."""
    try:
        # As in `http_clients`: with None, a context is made when one is needed; with False, nothing would be verified.
        verify: ssl.SSLContext = shared_ssl_context(base_url)  # pyright: ignore[reportAssignmentType]
        transport = httpx.AsyncHTTPTransport(verify=verify, proxy=proxy_for(base_url))
    except (OSError, ValueError, ImportError) as error:
        raise ModelUnavailableError(
            f"can't set up a connection to {base_url}: {error}",
            hint="check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables in the environment",
        ) from error
    return httpx.AsyncClient(
        timeout=httpx.Timeout(timeout, connect=CONNECT_TIMEOUT), transport=_BoundedTransport(transport)
    )


class _BoundedTransport(httpx.AsyncBaseTransport):
    def __init__(self, transport: httpx.AsyncHTTPTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        begun = time.monotonic()
        request.headers["accept-encoding"] = ENCODINGS
        deadline = asyncio.timeout(LONGEST_ANSWER)
        try:
            async with deadline:
                response = await self._transport.handle_async_request(request)
        except TimeoutError as error:
            if deadline.expired():
                raise too_slow() from error
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            packed = check_encoding(response.headers)
        except AnswerBoundError:
            await response.aclose()
            raise
        if packed:  # it is unpacked here, a bit at a time
            del response.headers["content-encoding"]
            response.headers.pop("content-length", None)
        in_events = "event" in response.headers.get("content-type", "")
        response.stream = _AnswerBody(response.stream, packed=packed, in_events=in_events, begun=begun)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _AnswerBody(httpx.AsyncByteStream):
    """A response body, bounded."""

    def __init__(self, stream: httpx.AsyncByteStream, *, packed: bool, in_events: bool, begun: float) -> None:
        self._stream = stream
        self._packed = packed
        self._in_events = in_events
        self._begun = begun

    def __aiter__(self) -> AsyncIterator[bytes]:
        parts = self._stream.__aiter__()
        return bounded_stream(parts, packed=self._packed, in_events=self._in_events, begun=self._begun)

    async def aclose(self) -> None:
        await self._stream.aclose()

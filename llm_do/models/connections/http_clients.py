"""HTTP clients for providers, and the one SSL context of the process, created for the first https address."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from pydantic_ai.models import create_async_httpx2_client

from llm_do.errors import ModelUnavailableError
from llm_do.models.connections.answer_bounds import (
    ENCODINGS,
    LONGEST_ANSWER,
    AnswerBoundError,
    bounded_stream,
    check_encoding,
    check_redirect,
    too_slow,
)

if TYPE_CHECKING:
    import ssl

__all__ = ["REQUEST_TIMEOUT", "SpreadTransport", "http_client", "proxy_for", "shared_ssl_context"]

SHARD = 32
"""Concurrent requests per pool: a pool searches all its connections for each request."""

SHARDS = 32
IDLE = 8
CONNECT_TIMEOUT = 15.0
"""Seconds; generous, because a loop that starts hundreds of requests at once gets late to each of them."""

REQUEST_TIMEOUT = 600.0

_lock = threading.Lock()
_ssl_context: ssl.SSLContext | None = None


def http_client(base_url: str, *, timeout: float = REQUEST_TIMEOUT) -> httpx2.AsyncClient:
    """Create a client for one provider's address; proxies and certificates come from the environment."""
    try:
        transport = SpreadTransport(shared_ssl_context(base_url), proxy_for(base_url))
    except (OSError, ValueError, ImportError) as error:
        raise ModelUnavailableError(
            f"can't set up a connection to {base_url}: {error}",
            hint="check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables in the environment",
        ) from error
    client = create_async_httpx2_client(
        timeout=httpx2.Timeout(timeout, connect=CONNECT_TIMEOUT),
        transport=transport,
    )
    client.headers["accept-encoding"] = ENCODINGS
    return client


def proxy_for(base_url: str) -> str | None:
    """Return the proxy for this address from the environment, if there is one."""
    address = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def shared_ssl_context(base_url: str) -> ssl.SSLContext | None:
    """Return the SSL context of the process for an https address, None for another one.

    Raises:
        OSError: The certificates that the environment names can't be read.
    """
    global _ssl_context
    if urlsplit(base_url).scheme != "https":
        return None
    with _lock:
        if _ssl_context is None:
            _ssl_context = httpx2.create_ssl_context()
        return _ssl_context


class SpreadTransport(httpx2.AsyncBaseTransport):
    """A transport that spreads requests over pools of limited size, so that a request costs the same under load.

    Nothing of an answer reaches an SDK that isn't bounded (`answer_bounds`).
    If `context` is None, a pool creates an SSL context when it needs one.
    """

    def __init__(self, context: ssl.SSLContext | None, proxy: str | None = None) -> None:
        self._context = context
        self._proxy = proxy
        self._shards = [self._shard()]

    def _shard(self) -> _Shard:
        limits = httpx2.Limits(max_connections=SHARD, max_keepalive_connections=IDLE)
        # With None the pool creates a context when it needs one; with False it would verify nothing.
        verify: ssl.SSLContext = self._context  # pyright: ignore[reportAssignmentType]
        return _Shard(httpx2.AsyncHTTPTransport(verify=verify, limits=limits, proxy=self._proxy))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        shard = self._free_shard()
        shard.active += 1
        begun = time.monotonic()
        if request.headers.get("accept-encoding") != ENCODINGS:  # an SDK has its own idea
            request.headers["accept-encoding"] = ENCODINGS
        deadline = asyncio.timeout(LONGEST_ANSWER)
        try:
            async with deadline:
                response = await shard.transport.handle_async_request(request)
        except BaseException as error:
            shard.active -= 1
            if deadline.expired():
                raise too_slow() from error
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _AnswerBody(response, response.stream, shard, begun)
        try:
            check_redirect(request.url, response.status_code, response.headers)
            response.stream.unpack(response.headers)
        except AnswerBoundError:
            await response.aclose()
            raise
        return response

    def _free_shard(self) -> _Shard:
        for shard in self._shards:
            if shard.active < SHARD:
                return shard
        if len(self._shards) < SHARDS:
            self._shards.append(self._shard())
            return self._shards[-1]
        return min(self._shards, key=lambda shard: shard.active)

    async def aclose(self) -> None:
        for shard in self._shards:
            await shard.transport.aclose()


class _Shard:
    __slots__ = ("active", "transport")

    def __init__(self, transport: httpx2.AsyncHTTPTransport) -> None:
        self.transport = transport
        self.active = 0


class _AnswerBody(httpx2.AsyncByteStream):
    """A response body, bounded, whose request counts as active until it is closed."""

    def __init__(self, response: httpx2.Response, stream: httpx2.AsyncByteStream, shard: _Shard, begun: float) -> None:
        self._stream = stream
        self._shard: _Shard | None = shard
        self._begun = begun
        self._packed = False
        self._in_events = "event" in response.headers.get("content-type", "")

    def unpack(self, headers: httpx2.Headers) -> None:
        """Unpack the body here, a bit at a time, so that the client doesn't."""
        if check_encoding(headers):
            self._packed = True
            del headers["content-encoding"]
            headers.pop("content-length", None)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded_stream(
            self._stream.__aiter__(), packed=self._packed, in_events=self._in_events, begun=self._begun
        )

    async def aclose(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            shard.active -= 1
        await self._stream.aclose()

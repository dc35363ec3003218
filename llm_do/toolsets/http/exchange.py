"""One request and its response: connected to the address that was checked, bounded in time and size.

The response is read unpacked in small pieces, so that a few bytes can't become gigabytes. There is one connection for
each request, no cookies, no proxy and no redirect: what else may be requested is `llm_do.toolsets.http.http_tools`'
business.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import httpx2

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.models.connections.answer_bounds import ENCODINGS, AnswerBoundError, Unpacker, check_encoding
from llm_do.models.connections.http_clients import shared_ssl_context

if TYPE_CHECKING:
    from llm_do.toolsets.http.targets import Target

__all__ = ["Exchange", "exchange"]

_CONNECT_SECONDS = 10.0
_AGENT = "llm-do"


@frozen
class Exchange:
    """What came back of one request.

    Args:
        status: The HTTP status.
        content_type: The media type as the server gives it, with its parameters; empty without one.
        location: Where a redirect leads; None if it is none.
        body: The body, as far as it was read.
        cut: Whether there is more of it.
    """

    status: int
    content_type: str
    location: str | None
    body: bytes
    cut: bool


async def exchange(
    method: str,
    target: Target,
    addresses: Sequence[str],
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    most: int,
) -> Exchange:
    """Send a request to one of these addresses, the first that answers, and read at most `most` bytes of the response.

    Raises:
        ToolError: There is no response, or none that can be read.
    """
    for number, address in enumerate(addresses, start=1):
        try:
            return await _exchange(method, target, address, headers, body, most)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if number == len(addresses):
                raise ToolError(f"{target.host} can't be connected to: {_reason(error)}") from error
        except AnswerBoundError as error:
            raise ToolError(f"{target.host}: {error}") from error
        except httpx2.DecodingError as error:
            raise ToolError(f"{target.host}: {error}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolError(f"{target.host} gave no response that can be read: {_reason(error)}") from error
    raise ToolError(f"the host {target.host} has no address")


async def _exchange(
    method: str, target: Target, address: str, headers: Mapping[str, str], body: bytes | None, most: int
) -> Exchange:
    url = httpx2.URL(
        scheme=target.url.scheme, host=address, port=target.port, raw_path=target.url.target.encode("ascii")
    )
    ours = {"host": target.authority, "user-agent": _AGENT, "accept": "*/*", "accept-encoding": ENCODINGS}
    request = httpx2.Request(
        method,
        url,
        headers={**ours, **{name.lower(): value for name, value in headers.items()}, "connection": "close"},
        content=body,
        # The certificate has to be the host's, whatever its address.
        extensions={"sni_hostname": target.host, "timeout": {"connect": _CONNECT_SECONDS}},
    )
    context = await asyncio.to_thread(_context, target)
    verify: ssl.SSLContext | bool = context if context is not None else False  # there is nothing to verify by http
    async with httpx2.AsyncHTTPTransport(verify=verify, trust_env=False) as transport:
        response = await transport.handle_async_request(request)
        try:
            packed = check_encoding(response.headers)
            read, cut = await _read(response, Unpacker() if packed else None, most)
        finally:
            await response.aclose()
    location = response.headers.get("location") if response.status_code in _REDIRECTS else None
    return Exchange(response.status_code, response.headers.get("content-type", ""), location, read, cut)


_REDIRECTS = (301, 302, 303, 307, 308)


def _context(target: Target) -> ssl.SSLContext | None:
    try:
        return shared_ssl_context(target.text)
    except (OSError, ValueError) as error:
        raise ToolError(f"there are no certificates to check {target.host} with: {error}") from error


async def _read(response: httpx2.Response, unpacker: Unpacker | None, most: int) -> tuple[bytes, bool]:
    """Return the beginning of a body, and whether there is more of it."""
    found = bytearray()
    received = 0
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for part in response.stream:
        received += len(part)
        for piece in (part,) if unpacker is None else unpacker.pieces(part):
            found += piece
            if len(found) > most:
                return bytes(found[:most]), True
        if received > most:  # packed so that hardly anything comes of it
            return bytes(found), True
    return bytes(found), False


def _reason(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip()
    return text or type(error).__name__

"""What the manifest configures of a toolset of type `http`: where it sends requests, with which headers, and bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from llm_do._startup.frozen import frozen
from llm_do.formats.validation.fields import (
    Opt,
    Strict,
    Text,
    empty_dict,
    empty_list,
)
from llm_do.policy.urls.addresses import is_local_name, is_public
from llm_do.policy.urls.url import DEFAULT_PORTS, read_url

__all__ = ["HttpConfig", "PrivateAddress", "http_faults", "is_address", "parse_private"]

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = frozenset({"accept-encoding", "connection", "content-length", "content-type", "expect", "host"})
_OURS_TOO = frozenset({"keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that the client sets, or that change how a message is read."""


@frozen
class PrivateAddress:
    """An address of this machine or of a private network that may be reached.

    Args:
        host: A host's name; empty for an address or a network.
        network: The address or the network.
        port: The only port; None for any.
    """

    host: str
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None


def parse_private(text: str) -> PrivateAddress | None:
    """Read an entry of `private`: `HOST`, `HOST:PORT`, an address or a network; None if it is none of these.

    Example:
        >>> parse_private("localhost:8080")
        PrivateAddress(host='localhost', network=None, port=8080)
        >>> parse_private("10.0.0.0/8").network, parse_private("http://localhost"), parse_private("*.local")
        (IPv4Network('10.0.0.0/8'), None, None)
    """
    try:
        return PrivateAddress("", ip_network(text))
    except ValueError:
        pass
    read = None if "/" in text else read_url(f"http://{text}")
    if read is None or read.url is None or read.url.target != "/":
        return None
    port = read.url.port if re.search(r":[0-9]+$", text) else None
    try:
        return PrivateAddress("", ip_network(read.host), port)
    except ValueError:
        return PrivateAddress(read.host, None, port)


def _literal(text: str) -> str:
    """Refuse variables in what says where requests and secrets go: rules, questions and trust show it as it is."""
    if "${" in text:
        message = "has to be written out: `${NAME}` isn't filled in here, since approvals and trust depend on the value"
        raise PydanticCustomError("variable", message)
    return text


def _base_url(text: str) -> str:
    read = read_url(text)
    url = read.url if read is not None else None
    if url is None or url.scheme not in DEFAULT_PORTS:
        raise PydanticCustomError("base_url", "must be a URL such as https://api.example.org/v1/, without a user name")
    if url.query is not None or "#" in text:
        raise PydanticCustomError("base_url", "is the beginning of URLs, so it has no query and no `#`")
    if url.server_segments != url.segments:
        raise PydanticCustomError("base_url", "has a path that servers may read in several ways")
    return text


def _private(text: str) -> str:
    if parse_private(text) is None:
        message = "must be a host, such as localhost:8080, an address, or a network, such as 10.0.0.0/8"
        raise PydanticCustomError("private", message)
    return text


def _header(name: str) -> str:
    if _TOKEN.fullmatch(name) is None:
        raise PydanticCustomError("header_name", "is no name of a header")
    if name.lower() in _OURS | _OURS_TOO:
        raise PydanticCustomError("header_name", "is a header that is set for each request")
    return name


def _header_value(text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise PydanticCustomError("header_value", "must be ASCII text in one line")
    return text


class HttpConfig(Strict):
    """Requests by HTTP, of which each needs approval unless a rule allows its URL."""

    type: Literal["http"] = Field(description="Requests by HTTP.")
    base_url: Opt[Annotated[str, AfterValidator(_literal), AfterValidator(_base_url)]] = Field(
        default=None,
        description="What all URLs begin with, such as https://api.example.org/v1/; requests to others are refused."
        " Variables aren't filled in.",
    )
    headers: dict[Annotated[Text, AfterValidator(_header)], Annotated[str, AfterValidator(_header_value)]] = Field(
        default_factory=empty_dict,
        description="Headers for requests below `base_url`, which models don't see; ${NAME} and ${NAME:-default} are"
        " filled in from the environment and `.env`.",
    )
    private: list[Annotated[Text, AfterValidator(_literal), AfterValidator(_private)]] = Field(
        default_factory=empty_list,
        description="Hosts, addresses and networks of this machine or a private network that may be reached, such as"
        " localhost:8080; all others of these are refused.",
    )
    timeout: float = Field(
        default=30, gt=0, le=3600, allow_inf_nan=False, description="Seconds that a request may take, with redirects."
    )
    max_bytes: int = Field(
        default=1_000_000, ge=1, le=50_000_000, description="Bytes that are read of an unpacked response."
    )


def http_faults(options: Mapping[str, object]) -> dict[str, str]:
    """Return what doesn't go with the other options: name to reason.

    Example:
        >>> http_faults({"headers": {"X-Key": "${KEY}"}})
        {'headers': 'are sent to `base_url` alone, which is missing'}
        >>> http_faults({"base_url": "http://localhost:8080/"})
        {'base_url': 'is an address of this machine or a private network, which `private` has to name'}
        >>> http_faults({"base_url": "http://localhost:8080/", "private": ["localhost:8080"]})
        {}
    """
    base, headers = options.get("base_url"), options.get("headers")
    if base is None:
        return {"headers": "are sent to `base_url` alone, which is missing"} if headers else {}
    read = read_url(base) if isinstance(base, str) else None
    if read is None or read.url is None:
        return {}
    private = cast("object", options.get("private"))
    texts = cast("list[object]", private) if isinstance(private, list) else []
    named = any(_names(parse_private(each), read.host) for each in texts if isinstance(each, str))
    if not named and (is_local_name(read.host) or (is_address(read.host) and not is_public(read.host))):
        return {"base_url": "is an address of this machine or a private network, which `private` has to name"}
    if headers and read.url.scheme != "https" and not named:
        return {"headers": "would be sent without encryption; use https, or name the host in `private`"}
    return {}


def _names(entry: PrivateAddress | None, host: str) -> bool:
    """Whether an entry of `private` names a host."""
    if entry is None:
        return False
    if entry.network is None:
        return entry.host == host
    return is_address(host) and ip_address(host) in entry.network


def is_address(host: str) -> bool:
    """Whether a host is an IP address, not a name."""
    return ":" in host or host.rpartition(".")[2].isdecimal()

"""Where a request may go: the URLs of a toolset, the addresses that a host's name stands for, and its headers.

An address is checked after it was looked up, and it is the one that is connected to: a name that stands for another
address a moment later (DNS rebinding) leads nowhere else.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError
from llm_do.formats.toolset_types.http_config import HttpConfig, PrivateAddress, is_address, parse_private
from llm_do.formats.variables import UnsetVariableError, expand_variables, references
from llm_do.policy.urls.addresses import is_local_name, is_public, is_unroutable
from llm_do.policy.urls.url import DEFAULT_PORTS, Url, read_url

__all__ = [
    "LookUp",
    "Target",
    "addresses_of",
    "check_number",
    "look_up",
    "read_target",
    "secret_values",
    "sent_headers",
]

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host."""

_LONGEST_URL = 8_192
_MOST_ADDRESSES = 4


@frozen
class Target:
    """Where one request goes: the host, as rules see it, and what is asked of it."""

    host: str
    url: Url

    @property
    def port(self) -> int:
        """The port that is connected to."""
        return self.url.port or DEFAULT_PORTS[self.url.scheme]

    @property
    def text(self) -> str:
        """The URL in the spelling that rules compare, which is also what is sent."""
        return self.url.text(self.host)

    @property
    def authority(self) -> str:
        """The host, with the port if it isn't the scheme's own, as the header `Host` has it."""
        return self.text.partition("://")[2].partition("/")[0]

    def is_below(self, base: str | None) -> bool:
        """Whether it is below a base URL; every target is without one."""
        read = read_url(base) if base is not None else None
        if read is None or read.url is None:
            return base is None
        own, other = self.url, read.url
        if (self.host, own.scheme, own.port) != (read.host, other.scheme, other.port):
            return False
        # What a server might read otherwise isn't below: `server_segments` are the same for all that is.
        folder = other.segments[:-1] if other.segments[-1] == "" else other.segments
        server = own.server_segments
        return server is not None and own.segments[: len(folder)] == folder == server[: len(folder)]


def read_target(text: str) -> Target:
    """Read the text of a URL as a request needs it.

    Raises:
        ValueError: It can't be requested; the message says what to write instead.

    Example:
        >>> read_target("https://API.example.org/a/../b?q=1").text
        'https://api.example.org/b?q=1'
    """
    if len(text) > _LONGEST_URL:
        raise ValueError(f"the URL is longer than {_LONGEST_URL:,} characters")
    read = read_url(text)
    if read is None or (read.url is None and "://" not in text):
        raise ValueError(
            "it isn't a URL such as https://api.example.org/v1: use ASCII letters, with others encoded (%20, %C3%BC) "
            "and hosts in their xn-- form"
        )
    if read.url is None:
        raise ValueError("a user name, a password, or a `%` without the two digits of a character can't be requested")
    if read.url.scheme not in DEFAULT_PORTS:
        raise ValueError(f"only http and https can be requested, not {read.url.scheme}")
    if read.url.port == 0:
        raise ValueError("port 0 can't be connected to")
    return Target(read.host, read.url)


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def check_number(target: Target, config: HttpConfig) -> None:
    """Raise `ToolError` for a host that needs no look-up to be refused: an address, or a name of this machine."""
    if is_address(target.host):
        _check(target, target.host, _named(config))
    elif is_local_name(target.host) and not _is_named(target, "127.0.0.1", _named(config)):
        raise _refusal(target, "is")


async def addresses_of(target: Target, config: HttpConfig, resolve: LookUp) -> Sequence[str]:
    """Return the addresses that a request may connect to.

    Raises:
        ToolError: The host has none, or one that mustn't be reached.
    """
    check_number(target, config)
    if is_address(target.host):
        return [target.host]
    try:
        found = await resolve(target.host, target.port)
    except (OSError, UnicodeError) as error:
        raise ToolError(
            f"the host {target.host} can't be found: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not found:
        raise ToolError(f"the host {target.host} has no address")
    for address in found:
        _check(target, address, _named(config))
    return found[:_MOST_ADDRESSES]


def _named(config: HttpConfig) -> list[PrivateAddress]:
    return [found for text in config.private if (found := parse_private(text)) is not None]


def _check(target: Target, address: str, named: Sequence[PrivateAddress]) -> None:
    if not is_public(address) and not _is_named(target, address, named):
        raise _refusal(target, "is" if address == target.host else f"leads to {address},")


def _refusal(target: Target, leads_to: str) -> ToolError:
    return ToolError(
        f"{target.host} {leads_to} an address of this machine or a private network, which can't be reached unless "
        "`private` in the toolset's configuration names the host"
    )


def _is_named(target: Target, address: str, named: Sequence[PrivateAddress]) -> bool:
    """Whether the configuration names an address, or the host that leads to it."""
    for entry in named:
        if entry.port not in (None, target.port):
            continue
        if entry.network is not None:
            if ip_address(address) in entry.network:
                return True
        elif entry.host == target.host and not is_unroutable(address):
            return True
    return False


def sent_headers(config: HttpConfig, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the configured headers with their variables filled in.

    Args:
        config: The configuration.
        variables: What variables stand for.

    Raises:
        ToolError: A variable isn't set, or can't be sent.
    """
    found: dict[str, str] = {}
    for name, text in config.headers.items():
        try:
            value = expand_variables(text, variables).strip()
        except UnsetVariableError as error:
            raise ToolError(
                f"the environment variable {error.name} is not set",
                hint="Set it in the environment of llm-do, or in the project's .env.",
            ) from None
        if not value.isascii() or not value.isprintable():
            raise ToolError(f"the value of the header {name} can't be sent: it has other characters than ASCII letters")
        found[name] = value
    return found


def secret_values(config: HttpConfig, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return what must not be seen of a response that repeats the headers, each with the name of its variable."""
    names = {name for text in config.headers.values() for name in references(text)}
    values = ((variables.get(name, ""), name) for name in sorted(names))
    return {value: name for value, name in values if len(value) >= _SHORTEST}


_SHORTEST = 4
"""Shorter values occur by chance in too much text."""

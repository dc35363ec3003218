"""Read the text of a URL as the host that it leads to, and as the scheme, port, path and query that it asks there.

Programs and servers read some texts differently. A host that they might disagree about is no host; a path has two
readings: what its text says, and what a server may make of it that decodes or simplifies it once more.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

__all__ = ["DEFAULT_PORTS", "ReadUrl", "Url", "normal_text", "query_parameters", "read_url", "server_text"]

DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#]*)(?P<rest>.*)")
_REST = re.compile(r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?")
_PORT = re.compile(r"(.*?)(?::([0-9]*))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_HOST = 253
_HIGHEST_PORT = 65_535

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_IN_PATH = _UNRESERVED | frozenset("!$&'()*+,;=:@/")
_IN_QUERY = _IN_PATH | frozenset("?")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SEPARATOR = re.compile(r"[&;]")
_MOST_DECODINGS = 8


@dataclass(frozen=True)
class Url:
    """What a URL asks of its host, in one spelling for all texts that mean the same.

    Args:
        scheme: The scheme, in lower case.
        port: The port, also where the text leaves it to the scheme; None if the scheme isn't known to have one.
        path: The path, without `.` and `..`: letters that needn't be encoded aren't, others are.
        query: The query in the same spelling; None if there is none.
        written: The path before `.` and `..` were resolved, which servers may do in another way.
    """

    scheme: str
    port: int | None
    path: str = "/"
    query: str | None = None
    written: str | None = field(default=None, compare=False, repr=False)

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path between slashes; the last is empty if the path ends with a slash."""
        return tuple(self.path.split("/")[1:])

    @cached_property
    def server_segments(self) -> tuple[str, ...] | None:
        """The parts of the path as a server may read it that decodes it again, and drops parameters and empty parts.

        None if `..` may mean something else to such a server, or to one that does some of this.
        """
        written = (self.written or self.path).split("/")[1:]
        text = server_text("/".join(written))
        if text is None:
            return None
        names = [part.partition(";")[0] for part in text.split("/")]
        if ".." in names and (
            "" in names[:-1]
            or text.split("/") != [server_text(part) for part in written]
            or [name == ".." for name in names] != [part == ".." for part in written]
        ):
            return None
        return tuple(_simplify(names, lenient=True))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of the query, such as `page=2`."""
        return query_parameters(self.query or "")

    @property
    def target(self) -> str:
        """The path and the query, as a request sends them."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    def text(self, host: str) -> str:
        """Return the whole URL, of a host.

        Example:
            >>> Url("https", 443, "/v1/users").text("api.example.org")
            'https://api.example.org/v1/users'
        """
        shown = f"[{host}]" if ":" in host else host
        port = "" if self.port is None or self.port == DEFAULT_PORTS.get(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{shown}{port}{self.target}"


class ReadUrl(NamedTuple):
    """A text as it is read: its host, and the URL; None for a host alone, or if the rest can't be read."""

    host: str
    url: Url | None


def read_url(text: str) -> ReadUrl | None:
    """Read a URL or `host[:port]`; None if programs might disagree about its host.

    A user name or password leaves the URL unread: only its host is known then.

    Example:
        >>> read_url("https://API.example.org:443/a/../b%7ec?q=%61")
        ReadUrl(host='api.example.org', url=Url(scheme='https', port=443, path='/b~c', query='q=a'))
        >>> read_url("api.example.org:8443"), read_url("http://127.1/")
        (ReadUrl(host='api.example.org', url=None), None)
    """
    if not text.isascii() or not text.isprintable() or any(char in text for char in " \\"):
        return None
    found = _URL.fullmatch(text)
    if found is None or (found["scheme"] is None and found["rest"]):
        return None
    user, at, authority = found["authority"].rpartition("@")
    if "@" in user:
        return None
    read = _ipv6(authority) if authority.startswith("[") else _named(authority)
    if read is None:
        return None
    host, port = read
    return ReadUrl(host, None if found["scheme"] is None or at else _rest(found["scheme"].lower(), port, found["rest"]))


def _rest(scheme: str, port: str, rest: str) -> Url | None:
    found = _REST.fullmatch(rest)
    if found is None or (port and int(port) > _HIGHEST_PORT):
        return None
    written, query = normal_text(found["path"] or "/"), found["query"]
    normal_query = None if query is None else normal_text(query, in_query=True)
    if written is None or (query is not None and normal_query is None):
        return None
    number = int(port) if port else DEFAULT_PORTS.get(scheme)
    return Url(scheme, number, "/" + "/".join(_simplify(written.split("/")[1:])), normal_query, written)


def normal_text(text: str, *, in_query: bool = False) -> str | None:
    """Return a path or a query in one spelling; None if it encodes what isn't text.

    Example:
        >>> normal_text("/%7euser/a%2fb/[x]"), normal_text("/%zz"), normal_text("/%ff"), normal_text("/a%0ab")
        ('/~user/a%2Fb/%5Bx%5D', None, None, None)
    """
    if "%" in _ESCAPE.sub("", text):
        return None
    kept = _IN_QUERY if in_query else _IN_PATH
    parts: list[str] = []
    at = 0
    for found in _ENCODED.finditer(text):
        parts += _encoded(text[at : found.start()], kept)
        encoded = unquote_to_bytes(found[0])
        try:
            decoded = encoded.decode()
        except UnicodeDecodeError:
            return None
        if any(ord(char) < ord(" ") or char == "\x7f" for char in decoded):
            return None
        parts += _encoded(decoded, _UNRESERVED)
        at = found.end()
    return "".join([*parts, *_encoded(text[at:], kept)])


def _encoded(text: str, kept: frozenset[str]) -> list[str]:
    return [char if char in kept else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text]


def server_text(text: str) -> str | None:
    r"""Return a path as a server may read it: decoded as often as that changes anything, with backslashes as slashes.

    Example:
        >>> server_text("/a%252fb"), server_text("/a\\b")
        ('/a/b', '/a/b')
    """
    for _ in range(_MOST_DECODINGS):
        try:
            decoded = _ENCODED.sub(lambda found: unquote_to_bytes(found[0]).decode(), text)
        except UnicodeDecodeError:
            return None
        if decoded == text:
            return text.replace("\\", "/")
        text = decoded
    return None


def _simplify(segments: Sequence[str], *, lenient: bool = False) -> list[str]:
    """Return segments without `.` and `..`; `lenient` without empty ones, as some servers do."""
    found: list[str] = []
    ends_in_folder = False
    for name in segments:
        ends_in_folder = name in (".", "..") or (lenient and not name)
        if name == "..":
            del found[-1:]
        elif not ends_in_folder:
            found.append(name)
    return [*found, ""] if ends_in_folder or not found else found


def query_parameters(query: str) -> tuple[str, ...]:
    """Return the parameters of a query; a blank has one spelling.

    Example:
        >>> query_parameters("q=a+b&page=2;debug")
        ('q=a%20b', 'page=2', 'debug')
    """
    return tuple(part.replace("+", "%20") for part in _SEPARATOR.split(query) if part)


def _named(authority: str) -> tuple[str, str] | None:
    match = _PORT.fullmatch(authority)
    if match is None:
        return None
    host = _host_name(match[1].lower().removesuffix("."))
    return None if host is None else (host, match[2] or "")


def _ipv6(authority: str) -> tuple[str, str] | None:
    address, closed, port = authority[1:].partition("]")
    if not closed or (port and not re.fullmatch(r":[0-9]*", port)):
        return None
    try:
        found = IPv6Address(address)
    except ValueError:
        return None
    # A zone names an interface, and a mapped address is the IPv4 address that it ends with.
    if found.scope_id is not None or found.ipv4_mapped is not None:
        return None
    return found.compressed, port[1:]


def _host_name(name: str) -> str | None:
    labels = name.split(".")
    if len(name) > _LONGEST_HOST or not all(map(_LABEL.fullmatch, labels)):
        return None
    if _NUMBER.fullmatch(labels[-1]):  # an address; only some programs accept short forms such as 127.1
        try:
            return str(IPv4Address(name))
        except ValueError:
            return None
    return name

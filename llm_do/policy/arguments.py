"""Resolve arguments by their text and their tool's facts: to a path, a command line or a host.

A toolset with a root of its own resolves its arguments against the files on disk. These functions serve the examples of
rules and tools without a resolver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address

from llm_do.policy.commands.command_line import CommandSyntaxError, parse_line
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Host, Pipeline, Resolved
from llm_do.text.globs import path_parts

__all__ = ["read_host", "resolve_by_text", "split_command"]

_URL = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#]*)(?P<rest>.*)")
_PORT = re.compile(r"(.*?)(?::[0-9]*)?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_HOST = 253


def resolve_by_text(facts: ToolFacts, args: Mapping[str, object]) -> dict[str, Resolved]:
    """Resolve the paths, commands and hosts among the arguments of a call; one that can't be resolved becomes None.

    Example:
        >>> facts = ToolFacts(paths=("path",), hosts=("url",))
        >>> resolve_by_text(facts, {"path": "../x", "url": "https://api.example.org/v1", "text": "Hello."})
        {'path': None, 'url': 'api.example.org'}
    """
    # A toolset that decides about its own calls expands file patterns, too.
    read_line = _split_with_patterns if facts.decides else split_command
    resolvers = {"path": _path, "command": read_line, "host": read_host}
    found: dict[str, Resolved] = {}
    for name, value in args.items():
        resolve = resolvers.get(facts.argument_kind(name))
        if resolve is not None and value is not None:
            found[name] = resolve(value) if isinstance(value, str) else None
    return found


def _path(text: str) -> str | None:
    """Return the path relative to the root, or None if it leads out of the root."""
    return None if path_parts(text) is None or text.startswith(("/", "~")) else text


def read_host(text: str) -> Host | None:
    """Return the host in a URL or `host[:port]`, in lower case, or None if programs might disagree about it.

    Example:
        >>> [read_host(text) for text in ("https://API.example.org:8443/v1?q=a", "[::1]:80", "127.0.0.1")]
        ['api.example.org', '::1', '127.0.0.1']
        >>> [read_host(text) for text in ("https://a.org\\\\@b.org/", "http://127.1/", "https://exämple.org", "a b")]
        [None, None, None, None]
    """
    if not text.isascii() or not text.isprintable() or any(char in text for char in " \\"):
        return None
    found = _URL.fullmatch(text)
    if found is None or (found["scheme"] is None and found["rest"]):
        return None
    user, _, host = found["authority"].rpartition("@")
    if "@" in user:
        return None
    if host.startswith("["):
        return _ipv6(host)
    match = _PORT.fullmatch(host)
    return _host_name(match[1].lower().removesuffix(".")) if match is not None else None


def _ipv6(host: str) -> Host | None:
    address, closed, port = host[1:].partition("]")
    if not closed or (port and not re.fullmatch(r":[0-9]*", port)):
        return None
    try:
        found = IPv6Address(address)
    except ValueError:
        return None
    # A zone names an interface, and a mapped address is the IPv4 address that it ends with.
    return None if found.scope_id is not None or found.ipv4_mapped is not None else Host(found.compressed)


def _host_name(name: str) -> Host | None:
    labels = name.split(".")
    if len(name) > _LONGEST_HOST or not all(map(_LABEL.fullmatch, labels)):
        return None
    if _NUMBER.fullmatch(labels[-1]):  # an address; only some programs accept short forms such as 127.1
        try:
            return Host(str(IPv4Address(name)))
        except ValueError:
            return None
    return Host(name)


def split_command(line: str) -> Pipeline | None:
    """Split a command line into its commands; return None if it isn't joined commands of literal words.

    File patterns aren't literal words.

    Example:
        >>> split_command("git log -3 | grep 'a b'"), split_command("git log > x")
        ((('git', 'log', '-3'), ('grep', 'a b')), None)
    """
    try:
        parsed = parse_line(line)
    except CommandSyntaxError:
        return None
    return None if parsed.has_patterns else parsed.line


def _split_with_patterns(line: str) -> Pipeline | None:
    """Split a command line whose file patterns match nothing, so that they stay as they are."""
    try:
        return parse_line(line).line
    except CommandSyntaxError:
        return None

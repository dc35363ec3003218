"""Resolve arguments by their text and their tool's facts: to a path, a command line or a host.

A toolset with a root of its own resolves its arguments against the files on disk. These functions serve the examples of
rules and tools without a resolver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from llm_do.policy.commands.command_line import CommandSyntaxError, parse_line
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.urls.url import read_url
from llm_do.policy.values import Host, Pipeline, Resolved
from llm_do.text.globs import path_parts

__all__ = ["attached_paths", "read_host", "resolve_by_text", "split_command"]


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


def attached_paths(facts: ToolFacts, args: Mapping[str, object]) -> dict[str, Resolved]:
    """Return the paths of the files that a call of an agent or a flow attaches, which it thereby reads.

    Only rules that deny or ask look at them.

    Example:
        >>> facts = ToolFacts("agent", reads=("attachments",))
        >>> attached_paths(facts, {"input": "Compare.", "attachments": ["a.md", "b.md"]}), attached_paths(facts, {})
        ({'attachments': ('a.md', 'b.md')}, {})
    """
    if not facts.reads_attachments:
        return {}
    found: dict[str, Resolved] = {}
    for name in facts.reads:
        value = args.get(name)
        paths = [value] if isinstance(value, str) else value
        if isinstance(paths, list | tuple):
            every = cast("Sequence[object]", paths)
            texts = tuple(path for path in every if isinstance(path, str))
            if every:
                found[name] = texts if len(texts) == len(every) else None
        elif value is not None:
            found[name] = None
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
    read = read_url(text)
    return None if read is None else Host(read.host, read.url)


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

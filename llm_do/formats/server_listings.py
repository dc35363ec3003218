"""The tools that MCP servers had when `llm-do tools --connect` asked them, kept in `.llm-do/servers.json`.

People, rules and graphs learn from them before a run what a server offers; in a run, the server itself decides.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from llm_do._startup.frozen import frozen

__all__ = ["FILE", "ListedTool", "model_names", "read_listings", "server_digest", "write_listings"]

FILE = "servers.json"
"""The file in the project's local folder."""

_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@frozen
class ListedTool:
    """A tool as its server described it.

    Args:
        name: The server's own name of it.
        description: What it does.
        schema: The JSON Schema of its arguments.
        annotations: What it says about its effects, such as `readOnlyHint`.
    """

    name: str
    description: str | None
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])


def server_digest(config: Mapping[str, Any]) -> str:
    """Return what identifies a server, so that a listing isn't taken for that of another one.

    Example:
        >>> server_digest({"command": ["a"], "timeout": 1}) == server_digest({"command": ["a"], "timeout": 2})
        True
    """
    identity = [config.get("command"), config.get("url"), sorted(config.get("env") or ()), None]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def read_listings(text: str) -> dict[str, tuple[str, tuple[ListedTool, ...]]]:
    """Return each server's digest and tools; nothing for a file that isn't as `write_listings` wrote it."""
    try:
        servers = json.loads(text)["servers"]
        return {
            str(name): (
                str(server["digest"]),
                tuple(ListedTool(tool["name"], tool["description"], tool["schema"]) for tool in server["tools"]),
            )
            for name, server in cast("dict[str, Any]", servers).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def write_listings(listings: Mapping[str, tuple[str, Sequence[ListedTool]]]) -> str:
    """Return the text of the file.

    Example:
        >>> listings = {"kb": ("d", (ListedTool("search", None, {"type": "object"}),))}
        >>> read_listings(write_listings(listings)) == listings
        True
    """
    servers = {
        name: {
            "digest": digest,
            "tools": [{"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in tools],
        }
        for name, (digest, tools) in listings.items()
    }
    return json.dumps({"version": 1, "servers": servers}, ensure_ascii=False, indent=1) + "\n"


def model_names(own_names: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    """Return each tool's own name with the one that a model sees, without the prefix: valid for every provider.

    Example:
        >>> list(model_names(["a b", "a.b", "3d"], ""))
        [('a b', 'a_b'), ('a.b', 'a_b_2'), ('3d', '_3d')]
    """
    taken: set[str] = set()
    room = _LONGEST_NAME - (len(prefix) + 1 if prefix else 0)
    for own in own_names:
        plain = _UNUSABLE.sub("_", own) or "tool"
        if not prefix and plain[0] in "0123456789-":
            plain = f"_{plain}"
        plain = plain[:room]
        name, number = plain, 1
        while name in taken:
            number += 1
            suffix = f"_{number}"
            name = plain[: room - len(suffix)] + suffix
        taken.add(name)
        yield own, name

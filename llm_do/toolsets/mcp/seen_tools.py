"""What this machine has seen of servers' tools, kept for each project in the user's state folder.

It stands in for the lock in projects without one, or for a server that the lock doesn't have.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import StoreError
from llm_do.files.state_folder import StateFile, state_folder
from llm_do.formats.lock import address_of
from llm_do.formats.server_listings import ListedTool

__all__ = ["SeenServer", "forget_servers", "load_seen", "save_seen"]


@frozen
class SeenServer:
    """A server as this machine knows it.

    Args:
        tools: The tools it had when it was first used, and those that a person has allowed since, by their own names.
        added: By tool, arguments that the server has added since then.
    """

    tools: Mapping[str, ListedTool]
    added: Mapping[str, tuple[str, ...]]


def load_seen(root: Path, name: str, config: Mapping[str, Any]) -> SeenServer | None:
    """Return what is known of a server, None if it hasn't been used at its address.

    Raises:
        StoreError: The file can't be read.
    """
    path: object = "the state folder"
    try:
        file = _file(root)
        path = file.path
        text = file.read()
        servers = cast("dict[str, Any]", json.loads(text)["servers"]) if text is not None else {}
        server = servers.get(name)
        if server is None or server["address"] != address_of(config):
            return None
        tools = {
            own: ListedTool(own, tool["description"], tool["input"], tool["annotations"])
            for own, tool in server["tools"].items()
        }
        return SeenServer(tools, {own: tuple(names) for own, names in server["added"].items()})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"what is known of the MCP server {name} can't be read: {error}",
            hint=f"Look at {path}, and delete it to accept the tools that the server has now.",
        ) from error


def save_seen(root: Path, name: str, config: Mapping[str, Any], seen: SeenServer) -> None:
    """Keep what is known of a server.

    Raises:
        OSError: The file can't be written.
    """
    entry = {
        "address": address_of(config),
        "tools": {
            own: {"description": tool.description, "input": dict(tool.schema), "annotations": dict(tool.annotations)}
            for own, tool in seen.tools.items()
        },
        "added": {own: list(names) for own, names in seen.added.items()},
    }
    _change(root, {name: entry})


def forget_servers(root: Path, names: Iterable[str]) -> None:
    """Forget what is known of servers, since the lock has them now."""
    with contextlib.suppress(OSError):
        if _file(root).read() is not None:
            _change(root, dict.fromkeys(names))


def _file(root: Path) -> StateFile:
    key = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return StateFile(state_folder() / "servers" / f"{key}.json")


def _change(root: Path, entries: Mapping[str, Mapping[str, Any] | None]) -> None:
    file = _file(root)
    with file.locked():
        servers: dict[str, Any] = {}
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            servers = dict(json.loads(file.read() or "{}")["servers"])
        servers.update(entries)
        kept = {name: entry for name, entry in servers.items() if entry is not None}
        text = json.dumps({"version": 1, "project": str(root), "servers": kept}, ensure_ascii=False, indent=1)
        file.write(text + "\n")

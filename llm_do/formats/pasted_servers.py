"""MCP servers as other programs configure them (`mcpServers`, `command` and `args`), and what to write here instead."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, cast

from llm_do.formats.syntax.source import KeyPath, Node

__all__ = ["server_hint", "split_command", "written_servers"]

_BLOCKS = ("mcpServers", "mcp_servers", "servers")
_TYPES = ("stdio", "http", "sse", "streamable-http", "streamable_http", "streamableHttp")
_OWN = ("include", "exclude", "prefix", "timeout", "required", "scope")


def split_command(text: str) -> list[str]:
    """Return the words of a command that was written as one text.

    Example:
        >>> split_command("npx -y 'my server'")
        ['npx', '-y', 'my server']
    """
    try:
        return shlex.split(text) or [text]
    except ValueError:
        return [text]


def written_servers(root: Node, path: KeyPath) -> str | None:
    """Return what to write for a block of servers that was copied from another program's configuration, as JSON text.

    Args:
        root: The manifest.
        path: Of the value that is wrong.
    """
    block = path[:1] if path[:1] and path[0] in _BLOCKS else path[:2] if path[1:2] and path[1] in _BLOCKS else None
    if block is None:
        return None
    node = root.at(block)
    data = node.data() if node is not None else None
    servers = _servers(cast("dict[str, Any]", data)) if isinstance(data, dict) else {}
    return f'"toolsets": {json.dumps(servers, ensure_ascii=False, indent=2)}' if servers else None


def server_hint(root: Node, path: KeyPath) -> str | None:
    """Say what to write for a server that another program's configuration was copied from.

    Args:
        root: The manifest.
        path: Of the value that is wrong.
    """
    if len(path) < 2 or path[0] != "toolsets":
        return None
    node = root.at(path[:2])
    data = node.data() if node is not None else None
    if not isinstance(data, dict) or not _is_foreign(cast("dict[str, Any]", data)):
        return None
    return f"write {json.dumps(_server(cast('dict[str, Any]', data)), ensure_ascii=False)}"


def _servers(block: Mapping[Any, Any]) -> dict[str, Any]:
    """The servers of a block, which may be in another block."""
    for key in _BLOCKS:
        if isinstance(inner := block.get(key), dict):
            return _servers(cast("dict[str, Any]", inner))
    return {
        str(name): _server(cast("dict[str, Any]", server))
        for name, server in block.items()
        if isinstance(server, dict) and ("command" in server or "url" in server)
    }


def _is_foreign(server: Mapping[str, Any]) -> bool:
    kind = server.get("type")
    if kind is None or kind in _TYPES:
        return "url" in server or ("command" in server and "allow" not in server)
    return kind == "mcp" and ("args" in server or isinstance(server.get("command"), str))


def _server(server: Mapping[str, Any]) -> dict[str, Any]:
    """The same server as we configure it. Values that may be secret are replaced by references to the environment."""
    written: dict[str, Any] = {"type": "mcp"}
    command, args = server.get("command"), server.get("args")
    words = [*map(str, cast("list[object]", args))] if isinstance(args, list) else []
    if isinstance(command, str):
        written["command"] = [command, *words] if words else split_command(command)
    elif isinstance(command, list):
        written["command"] = [*map(str, cast("list[object]", command)), *words]
    if isinstance(server.get("url"), str):
        written["url"] = server["url"]
    if isinstance(env := server.get("env"), dict) and env:
        written["env"] = {str(name): f"${{{name}}}" for name in cast("dict[str, Any]", env)}
    if isinstance(headers := server.get("headers"), dict) and headers:
        written["headers"] = {str(name): "..." for name in cast("dict[str, Any]", headers)}
    return {**written, **{key: server[key] for key in _OWN if key in server}}

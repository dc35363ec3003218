"""Asks the project's MCP servers for their tools: for `tools`, `graph`, `explain` and `check`, and for the lock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["connect_servers", "forget_seen", "lock_contents"]


def connect_servers(project: Project) -> dict[str, Any]:
    """Start or contact every configured server, and keep what it lists; returns the number of tools, or the fault."""
    from llm_do.toolsets.mcp.listing import list_servers

    found = asyncio.run(list_servers(project))
    return {
        name: {"tools": len(answer), "left_out": left_out} if isinstance(answer, list) else {"fault": answer}
        for name, (answer, left_out) in found.items()
    }


def lock_contents(project: Project) -> dict[str, Any]:
    """What the lock has of a project: its `servers`, and the `packages` that it uses with their versions."""
    return {"servers": _server_entries(project), "packages": dict(project.packages)}


def _server_entries(project: Project) -> dict[str, Any]:
    """Start or contact every configured server; returns its entry for the lock, or the fault."""
    if not any(config.get("type") == "mcp" for config in project.toolset_configs.values()):
        return {}
    from llm_do.formats.lock import LockedServer, address_of
    from llm_do.formats.lock_file import server_entry
    from llm_do.toolsets.mcp.listing import list_servers

    found = asyncio.run(list_servers(project))
    return {
        name: {
            "entry": server_entry(
                LockedServer(address_of(project.toolset_configs[name]), {tool.name: tool for tool in answer})
            )
        }
        if isinstance(answer, list)
        else {"fault": answer}
        for name, (answer, _) in found.items()
    }


def forget_seen(root: Path, names: Sequence[str]) -> None:
    """Forget what this machine has seen of servers, since the lock has them now."""
    from llm_do.toolsets.mcp.seen_tools import forget_servers

    forget_servers(root, names)

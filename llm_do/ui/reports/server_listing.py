"""Asks the project's MCP servers for their tools, and keeps the answers for `tools`, `graph`, `explain` and `check`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["connect_servers"]


def connect_servers(project: Project) -> dict[str, Any]:
    """Start or contact every configured server, and keep what it lists; returns the number of tools, or the fault."""
    from llm_do.toolsets.mcp.listing import list_servers

    found = asyncio.run(list_servers(project))
    return {
        name: {"tools": len(answer), "left_out": left_out} if isinstance(answer, list) else {"fault": answer}
        for name, (answer, left_out) in found.items()
    }

"""MCP servers as toolsets: what a manifest's `{"type": "mcp", ...}` describes."""

from __future__ import annotations

from llm_do.formats.toolset_config import McpConfig
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.mcp.server_toolset import McpServerToolset

__all__ = ["configured"]


def configured(ctx: BuiltinContext, config: McpConfig) -> McpServerToolset:
    """Build the toolset of one server, which runs may share; the server starts when an agent that lists it runs.

    Example:
        >>> from pathlib import Path
        >>> config = McpConfig(type="mcp", command=["search-server"], include=["search_*"])
        >>> configured(BuiltinContext("search", Path("."), Path(".")), config).prefix
        'search'
    """
    return McpServerToolset(ctx.name, config, ctx.project_root)

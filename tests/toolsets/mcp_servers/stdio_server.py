"""A small MCP server over stdio, made with the SDK."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("small", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool(name="odd.name/with:marks")
def odd() -> str:
    """A tool whose name providers reject."""
    return "odd"


server.run("stdio")

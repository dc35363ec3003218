"""A small MCP server over streamable HTTP, on a port of the system's choice, which it prints."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("small", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def header(name: str, ctx: Context) -> str:
    """Return a header of the request."""
    request = ctx.request_context.request
    return request.headers.get(name, "none") if request is not None else "no request"


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(server.streamable_http_app(), log_level="error", ws="none")
uvicorn.Server(config).run(sockets=[listener])
sys.exit(0)

"""A small MCP server over stdio. What it is told on its command line says how it misbehaves."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

mode = sys.argv[1] if len(sys.argv) > 1 else "well"

if mode == "dies":
    sys.exit("no configuration found\nplease configure me")
if mode == "hangs":
    print("waiting for a miracle", file=sys.stderr, flush=True)
    time.sleep(60)
if mode == "babbles":
    print("this is no protocol", flush=True)
if mode == "floods":
    for _ in range(2000):
        print("flood " * 100, file=sys.stderr)

from mcp.server.mcpserver import MCPServer  # noqa: E402 (slow to import, and the modes above need nothing of it)
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402

server = MCPServer("small", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def whoami() -> str:
    """Tell the process and what it was given."""
    return f"{os.getpid()} {os.environ.get('TOKEN', 'none')} {os.environ.get('OTHER_SECRET', 'none')} {Path.cwd()}"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def crash() -> str:
    """End the process."""
    print("crashing as asked", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def slow() -> str:
    """Take long."""
    print("thinking", file=sys.stderr, flush=True)
    time.sleep(60)
    return "late"


@server.tool()
def flood() -> str:
    """Write much on standard error and then answer."""
    for _ in range(5000):
        print("x" * 1000, file=sys.stderr)
    return "dry again"


@server.tool(name="odd.name/with:marks")
def odd() -> str:
    """Have a name that providers refuse."""
    return "odd"


server.run("stdio")

"""A server of the MCP SDK in this process, whose tools a test changes between two connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool


@dataclass
class ChangingServer:
    """Its address, the tools that it lists, and the calls that it got."""

    url: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def changing_server() -> Iterator[ChangingServer]:
    """Serve on the loopback interface until the block ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    served = ChangingServer(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool.model_validate(tool) for tool in served.tools])

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        served.calls.append((params.name, dict(params.arguments or {})))
        return CallToolResult(content=[TextContent(type="text", text=f"{params.name} done")])

    app = Server("kb", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.should_exit = True
        thread.join()
        listener.close()

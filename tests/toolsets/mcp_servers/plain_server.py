"""A small MCP server over stdio without the SDK, so that it starts fast; `stdio_server.py` uses the SDK.

Its command line selects how it misbehaves. Each request has its own thread, so that none waits
for a slow one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

WRITING = threading.Lock()
NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOLS: dict[str, dict[str, Any]] = {
    "add": {"type": "object", "properties": NUMBERS, "required": ["a", "b"]},
    **{
        name: {"type": "object", "properties": {}}
        for name in ("whoami", "crash", "slow", "flood", "huge", "3d", "l" * 62)
    },
    "fail": {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]},
}


BROKEN: list[Any] = [
    {"name": "no_schema"},
    {"name": "null_schema", "inputSchema": None},
    {"name": "list_schema", "inputSchema": []},
    {"name": "text_schema", "inputSchema": {"type": "string"}},
    {"name": "bad_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "strin"}}}},
    {"name": "bad_required", "inputSchema": {"type": "object", "required": "a"}},
    {"name": "bad_pattern", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}},
    {"name": "bad_reference", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/none"}}}},
    {"inputSchema": {"type": "object"}},
    "no object",
]
CURIOUS: dict[str, Any] = {
    "name": "curious",
    "description": 7,
    "annotations": "all",
    "outputSchema": [],
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|a)*$"}}},
}
MODE = sys.argv[1] if len(sys.argv) > 1 else "well"


def complain(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def use(name: str, arguments: dict[str, Any]) -> str:
    """Run a tool."""
    if name == "add":
        return str(arguments["a"] + arguments["b"])
    if name == "whoami":
        values = [os.environ.get(variable, "none") for variable in ("TOKEN", "OTHER_SECRET")]
        return f"{os.getpid()} {values[0]} {values[1]} {Path.cwd()}"
    if name == "crash":
        complain("crashing as asked")
        os._exit(3)
    if name == "slow":
        complain("thinking")
        Path("slow").touch()
        time.sleep(60)
    if name == "flood":
        for _ in range(5000):
            complain("x" * 1000)
        return "dry again"
    if name == "huge":
        return "many words " * 2_000_000
    if name == "curious":
        return "curiouser"
    if name.startswith("ll"):
        return f"a name of {len(name)}"
    raise ValueError(arguments.get("why", "late"))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request, or None for an unknown method."""
    if method == "initialize":
        server = {"name": "small", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        tools = [{"name": name, "description": name, "inputSchema": schema} for name, schema in TOOLS.items()]
        return {"tools": [*BROKEN, CURIOUS, *tools] if MODE == "broken" else tools}
    if method == "tools/call":
        try:
            text, failed = use(params["name"], params.get("arguments") or {}), False
        except ValueError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {} if method == "ping" else None


def serve(request: dict[str, Any]) -> None:
    """Answer one request."""
    result = answer(request["method"], request.get("params") or {})
    if result is None and MODE == "ignores":
        return
    reply = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)


def main(mode: str) -> None:
    """Answer requests until there are no more."""
    if mode == "dies":
        sys.exit("no configuration found\nplease configure me")
    if mode == "hangs":
        complain("waiting for a miracle")
        time.sleep(60)
    if mode == "babbles":
        print("this is no protocol", flush=True)
    if mode == "floods":
        for _ in range(2000):
            complain("flood " * 100)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            threading.Thread(target=serve, args=(request,), daemon=True).start()


if __name__ == "__main__":
    main(MODE)

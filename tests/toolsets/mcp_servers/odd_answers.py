"""An MCP server over stdio that answers calls as the protocol doesn't have it, or with what JSON readers refuse."""

from __future__ import annotations

import json
import sys
from typing import Any

ANSWERS = {
    "no result": '"result": null',
    "a list": '"result": [1]',
    "a text": '"result": "x"',
    "a number": '"result": 5',
    "an error that is a text": '"error": "broken"',
    "an error without a number": '"error": {"code": "odd", "message": {"a": 1}}',
    "levels": '"result": {"content": [], "structuredContent": ' + '{"a": ' * 300 + "1" + "}" * 301,
    "no JSON": '"result": {"content": [}',
    "half a character": '"result": {"content": [{"type": "text", "text": "cut \\ud83d"}]}',
    "characters in halves": '"result": {"content": [{"type": "text", "text": "\\ud83d\\ude00"}]}',
}


def answer(asked: dict[str, Any]) -> str:
    """Return the text that answers a request."""
    if asked["method"] == "tools/call":
        found = ANSWERS[asked["params"]["arguments"]["kind"]]
        return f'{{"jsonrpc": "2.0", "id": {json.dumps(asked["id"])}, {found}}}'
    if asked["method"] == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
        result = {"tools": [{"name": "get", "inputSchema": schema, "description": "cut \ud83d"}]}
    else:
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}})
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(answer(request), flush=True)

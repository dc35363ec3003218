"""An MCP server without the SDK, whose tool `answer` returns results of any size; over stdio if it is run.

Its results are named, or a number of rows, and so are answers that aren't results. Its command line has the number of
its tools, of those on a page of their list, of values in the schema of each, and of other messages that it sends with
each answer.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

TOO_MANY_WORDS = "many words " * 1_600_000
# Each of these makes an answer a little longer than what is parsed on the event loop, 64 KiB of JSON.
WORDS = "many words " * 6_400
ROWS = [
    {"id": number, "name": f"row {number}", "tags": ["a", 'b"\u20ac'], "share": number / 3} for number in range(900)
]
PICTURE = b"\x89PNG" + bytes(range(256)) * 200
LOG = {"level": "info", "data": "a line " * 40}
TOOL = {"name": "answer", "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


RESULTS: dict[str, Any] = {
    "small": {"content": [text("small")]},
    "text": {"content": [text(WORDS)], "isError": False},
    "json": {"content": [text(json.dumps(ROWS))]},
    "rows": {"content": [text(json.dumps(ROWS))], "structuredContent": {"result": ROWS}},
    "object": {"content": [], "structuredContent": {"rows": ROWS, "more": 1}},
    "parts": {"content": [text("first"), text(WORDS)]},
    "image": {
        "content": [
            text("a picture"),
            {"type": "image", "data": base64.b64encode(PICTURE).decode(), "mimeType": "image/png"},
        ]
    },
    "resources": {
        "content": [
            {"type": "resource", "resource": {"uri": "x:a", "text": WORDS}},
            {"type": "resource", "resource": {"uri": "x:b", "blob": base64.b64encode(PICTURE).decode()}},
            {"type": "resource_link", "uri": "x:c", "name": "c"},
        ]
    },
    "failed": {"content": [text("it broke. " + WORDS)], "isError": True},
    "odd": {"content": [{"type": "smell", "data": WORDS}]},
    "no content": {"text": WORDS},
    "deep": {"content": [], "structuredContent": {"deep": [], "words": WORDS}},
    "too large": {"content": [text(TOO_MANY_WORDS)]},
}
for _ in range(300):
    RESULTS["deep"]["structuredContent"]["deep"] = [RESULTS["deep"]["structuredContent"]["deep"]]


def result_of(kind: str) -> dict[str, Any]:
    """Return a result by its name, or so many rows."""
    if not kind.isdecimal():
        return RESULTS[kind]
    rows = [{"id": number, "name": f"row {number}", "good": True, "share": number / 3} for number in range(int(kind))]
    return {"content": [text(json.dumps(rows))], "structuredContent": {"result": rows}}


TOOLS, PAGE, VALUES, FLOOD = (
    [int(word) for word in sys.argv[1:5]] if __name__ == "__main__" and sys.argv[4:] else [0] * 4
)


def listed(start: int) -> dict[str, Any]:
    """Return a page of the list of tools."""
    if not TOOLS:
        return {"tools": [TOOL]}
    schema = {"type": "object", "examples": [1] * VALUES}
    names = [f"tool{number}" for number in range(start, min(start + PAGE, TOOLS))]
    more = {"nextCursor": str(start + PAGE)} if start + PAGE < TOOLS else {}
    return {"tools": [TOOL, *({"name": name, "inputSchema": schema} for name in names)][start > 0 :], **more}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what the server answers to a request."""
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        end: dict[str, Any] = {
            "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            }
        }
    elif method == "tools/list":
        end = {"result": listed(int(params.get("cursor", 0)))}
    elif method != "tools/call":
        end = {"error": {"code": -32601, "message": "Method not found"}}
    elif params["arguments"]["kind"] == "error":
        end = {"error": {"code": -32602, "message": "it broke. " + WORDS}}
    else:
        end = {"result": result_of(params["arguments"]["kind"])}
    return {"jsonrpc": "2.0", "id": request["id"], **end}


if __name__ == "__main__":
    for line in sys.stdin:
        if "id" in (asked := json.loads(line)):
            if asked["method"] == "tools/call":
                # Neither answers a request, the first of which has the id of one.
                ends = {"params": {"level": "info", "data": WORDS}, "jsonrpc": "2.0"}
                print(json.dumps({"method": "sampling/createMessage", **ends, "id": asked["id"]}))
                print(json.dumps({"method": "notifications/message", **ends}))
                progress = {"params": {"progressToken": asked["id"], "progress": 1}, "jsonrpc": "2.0"}
                for _ in range(FLOOD):
                    print(json.dumps({"method": "notifications/progress", **progress}))
                    print(json.dumps({"method": "notifications/tools/list_changed", "jsonrpc": "2.0"}))
                    print(json.dumps({"method": "notifications/message", "params": LOG, "jsonrpc": "2.0"}))
            print(json.dumps(answer(asked)), flush=True)

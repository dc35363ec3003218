"""A fast OpenAI-compatible server in a separate process, whose time isn't counted: `with serving() as url`.

The model's name is the script: `text`, `tools-N` (N rounds of one call of `add`, then text), `slow-MS` (text after a
pause), `stream-N` (text in N chunks), `children-N-MS` (one response that calls `child_0` to `child_N-1`, whose model is
`slow-MS`).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "bench"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


@contextmanager
def serving() -> Iterator[str]:
    """Start the server for the duration of the block, and yield its base URL."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.server"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def answer(request: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return the delay in seconds and the message of the answer to a request."""
    name, *numbers = request["model"].split("-")
    done = sum(message["role"] == "assistant" for message in request["messages"])
    if name == "tools" and done < int(numbers[0]):
        return 0, calls([("add", {"a": done, "b": 1})])
    if name == "children" and done == 0:
        return 0, calls([(f"child_{number}", {"input": str(number)}) for number in range(int(numbers[0]))])
    return (int(numbers[0]) / 1000 if name == "slow" else 0), {"role": "assistant", "content": "Done, thank you."}


def calls(requested: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Build a message with tool calls."""
    listed = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for number, (name, args) in enumerate(requested)
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """Encode one event of a stream."""
    data = {
        **HEAD,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(data).encode() + b"\n\n"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            request = json.loads(await reader.readexactly(length))
            pause, message = answer(request)
            if pause:
                await asyncio.sleep(pause)
            if request.get("stream"):
                await stream(writer, request, message)
                return
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            choices = [{"index": 0, "message": message, "finish_reason": finish}]
            body = json.dumps({**HEAD, "object": "chat.completion", "usage": USAGE, "choices": choices}).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def stream(writer: asyncio.StreamWriter, request: dict[str, Any], message: dict[str, Any]) -> None:
    """Answer in chunks and close the connection."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    name, *numbers = request["model"].split("-")
    for number in range(int(numbers[0]) if name == "stream" else 1):
        writer.write(chunk({"role": "assistant", "content": f"word{number} "}))
        if number % 50 == 0:
            await writer.drain()
    if message.get("tool_calls"):
        for index, call in enumerate(message["tool_calls"]):
            writer.write(chunk({"tool_calls": [{"index": index, **call}]}))
    writer.write(chunk({}, "tool_calls" if message.get("tool_calls") else "stop"))
    usage = {**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    writer.write(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")
    await writer.drain()


async def main() -> None:
    """Serve until terminated; the first line of output is the base URL."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

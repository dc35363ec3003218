"""`ReadableRequests`: what a client sends, line by line, as the SDK can read it.

The SDK drops what it can't read, and the client would wait for an answer in vain.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TextIO, cast

import anyio
from mcp.types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic_core import from_json

from llm_do.text.surrogates import replace_surrogates_in_data

__all__ = ["ReadableRequests", "Replies"]

_ID = r'"id"\s*:\s*(?P<id>\d+|"[^"\\]*")'
_OTHERS = r'"jsonrpc"\s*:\s*"2\.0"|"method"\s*:\s*"[^"\\]*"'
_START = re.compile(rf"\s*\{{\s*(?:(?:{_OTHERS})\s*,\s*){{0,2}}{_ID}\s*[,}}]")
"""A request up to its id."""


class Replies:
    """Writes lines to the client, each in one piece.

    Args:
        stdout: What the client gets.
    """

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = anyio.wrap_file(stdout)
        self._lock = anyio.Lock()

    async def write(self, text: str) -> int:
        """Write text that ends a line."""
        async with self._lock:
            written = await self._stdout.write(text)
            await self._stdout.flush()
        return written

    async def flush(self) -> None:
        """Do nothing: what is written has been flushed."""


class ReadableRequests:
    """The lines that the SDK reads; what it couldn't read is answered with an error.

    Halves of characters, which clients that cut texts send, become replacement characters.

    Args:
        stdin: What the client sends.
        reply: Writes an answer.
    """

    def __init__(self, stdin: TextIO, reply: Callable[[str], Awaitable[object]]) -> None:
        self._stdin = anyio.wrap_file(stdin)
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._stdin:
            if not line.strip():
                continue
            try:
                readable = _readable(line)
            except _UnreadableError as error:
                await self._reply(error.answer)
            else:
                yield readable


class _UnreadableError(Exception):
    """A message that can't be read, with the line that answers it."""

    def __init__(self, code: int, problem: str, request_id: object) -> None:
        error = {"code": code, "message": problem}
        self.answer = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}) + "\n"


def _readable(line: str) -> str:
    try:
        data: object = from_json(line)
    except ValueError as error:
        try:
            line = json.dumps(replace_surrogates_in_data(json.loads(line)))
            data = from_json(line)
        except (ValueError, RecursionError):
            start = _START.match(line)
            known = None if start is None else json.loads(start["id"])
            raise _UnreadableError(PARSE_ERROR, f"the message can't be read: {error}", known) from error
    known = cast("dict[str, object]", data).get("id", "") if isinstance(data, dict) else None
    has_id = isinstance(known, str | int) and not isinstance(known, bool)
    try:
        jsonrpc_message_adapter.validate_python(data, by_name=False)
        if not has_id:  # it would be taken for a notification, which isn't answered
            raise ValueError("its id is neither a text nor a number without a fraction")
    except ValueError as error:
        problem = "the message isn't one of the protocol (JSON-RPC 2.0)"
        raise _UnreadableError(INVALID_REQUEST, problem, (known or None) if has_id else None) from error
    return line

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

_FIELD = re.compile(r'\s*[{,]\s*"(?P<name>jsonrpc|id|method)"\s*:\s*(?P<value>\d+|"[^"\\]*")')
"""One of the short fields that most messages begin with."""

_ANSWER = re.compile(r'\s*,\s*"(?:result|error)"')

_SHAPE = "the message isn't one of the protocol (JSON-RPC 2.0)"


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

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


def _readable(line: str) -> str:
    try:
        data: object = from_json(line)
    except ValueError as error:
        try:
            line = json.dumps(replace_surrogates_in_data(json.loads(line)))
            data = from_json(line)
        except (ValueError, RecursionError):
            request_id, is_answer = _beginning(line)
            return _refused(PARSE_ERROR, f"the message can't be read: {error}", request_id, is_answer=is_answer)
    if not isinstance(data, dict):
        return _refused(INVALID_REQUEST, _SHAPE)
    message = cast("dict[str, object]", data)
    request_id, is_answer = message.get("id"), "method" not in message and not message.keys().isdisjoint(_OUTCOMES)
    fits = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    try:
        jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValueError:
        return _refused(INVALID_REQUEST, _SHAPE, request_id if fits else None, is_answer=is_answer)
    if "method" in message and "id" in message and not fits:  # it would pass for a notification, which isn't answered
        return _refused(INVALID_REQUEST, _SHAPE)
    return line


_OUTCOMES = ("result", "error")


def _beginning(line: str) -> tuple[object, bool]:
    """The id of a message that can't be parsed, if it is near its beginning, and whether it is an answer."""
    request_id, at = None, 0
    while (found := _FIELD.match(line, at)) is not None:
        at = found.end()
        if found["name"] == "id":
            request_id = json.loads(found["value"])
    return request_id, _ANSWER.match(line, at) is not None


def _refused(code: int, problem: str, request_id: object = None, *, is_answer: bool = False) -> str:
    """Refuse a message: a request is answered with an error, and an answer is read as one.

    Raises:
        _UnreadableError: It isn't an answer.
    """
    refusal = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": problem}}) + "\n"
    if not is_answer:
        raise _UnreadableError(refusal)
    return refusal

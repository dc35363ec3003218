"""Answers of servers that are too large to be parsed while nothing else has a turn, and answers too large to be read.

The SDK parses each message in one go, on the event loop. So it gets a small message in the place of a large one, which
is kept here until the request that it answers takes it, and is parsed in a worker thread (`read_large_json`). An answer
that is too large to be kept becomes an error, which ends the call that it would have answered. Anything else that is
too large is dropped.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from typing import cast

from pydantic_core import from_json

from llm_do._startup.frozen import frozen
from llm_do.text.surrogates import replace_surrogates_in_data

__all__ = [
    "EDGE",
    "LARGEST_MESSAGE",
    "LARGE_MESSAGE",
    "REFUSED",
    "TOO_LARGE",
    "LargeAnswer",
    "LargeAnswers",
    "MessageParts",
    "begins_answer",
    "refusal",
    "refusal_of",
    "usable",
]

LARGEST_MESSAGE = 16 * 2**20
"""Bytes of one message of a server, however it comes, unpacked; a picture in it has a few million."""

LARGE_MESSAGE = 2**16
"""Bytes of a message that the SDK gets as it is, and parses and checks on the event loop without a noticeable pause."""

TOO_LARGE = f"the server's answer is longer than {LARGEST_MESSAGE // 2**20} MiB, the most that is read; ask for less"

REFUSED = "llm_do refused it"
"""The data of an error that takes the place of an answer."""

_MOST_KEPT = 4 * LARGEST_MESSAGE
"""Bytes of answers that are kept; an answer to a request that has been given up isn't taken."""

_KEY = "llm_do large answer"
EDGE = 4096
"""Bytes at either end of a message, of which one has its id."""

_ID = rb'"id"\s*:\s*(?P<id>\d+|"[^"\\]*"|null)'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_START = re.compile(
    rb"\s*\{\s*(?:(?:" + _ID + rb"|" + _VERSION + rb')\s*,\s*){0,2}"(?P<kind>result|error)"\s*:\s*(?=\{)'
)
_END = re.compile(rb"\}(?P<rest>\s*(?:,\s*(?:" + _ID + rb"|" + _VERSION + rb")\s*){0,2}\}\s*)\Z")


_NO_ANSWER = "the server's answer isn't one of the protocol"


@frozen
class LargeAnswer:
    """A large answer.

    Args:
        data: The JSON of its result or error.
        is_error: Whether it is an error.
    """

    data: bytes
    is_error: bool


class LargeAnswers:
    """The large answers of one connection that no request has taken yet."""

    def __init__(self) -> None:
        self._kept: dict[str, LargeAnswer] = {}
        self._size = 0

    def keep(self, message: bytes, request_id: object = None) -> bytes | None:
        """Return the message that the SDK gets: a small one as it is; None if it is large and answers nothing.

        Args:
            message: A message of the server.
            request_id: The id of the request that it answers, if that is known.
        """
        if len(message) <= LARGE_MESSAGE:
            return message
        start, end = _START.match(message[:EDGE]), _END.search(message[-EDGE:])
        answered = _answered(start, end, request_id)
        if answered is None:
            return None if request_id is None else refusal(request_id, _NO_ANSWER)
        if start is None or end is None:
            return refusal(answered, _NO_ANSWER)
        data = message[start.end() : len(message) - len(end["rest"])]
        token = secrets.token_hex(16)
        self._kept[token] = LargeAnswer(data, start["kind"] == b"error")
        self._size += len(data)
        while self._size > _MOST_KEPT:
            self._forget(next(iter(self._kept)))
        return json.dumps({"jsonrpc": "2.0", "id": answered, "result": {_KEY: token}}).encode()

    def take(self, result: Mapping[str, object]) -> LargeAnswer | None:
        """Return the answer that a result stands for; None for any other result."""
        token = result.get(_KEY)
        return self._forget(token) if isinstance(token, str) and token in self._kept else None

    def _forget(self, token: str) -> LargeAnswer:
        answer = self._kept.pop(token)
        self._size -= len(answer.data)
        return answer


class MessageParts:
    """A message that isn't complete yet; of one that is too large, only its edges are kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0
        self._start = b""
        self._end = b""

    def add(self, part: bytes) -> None:
        """Add the next bytes."""
        self.size += len(part)
        if self.size <= LARGEST_MESSAGE:
            self._parts.append(part)
            return
        if self._parts:
            joined = b"".join(self._parts)
            self._start, self._end = joined[:EDGE], joined[-EDGE:]
            self._parts.clear()
        self._end = (self._end + part)[-EDGE:]

    @property
    def is_too_large(self) -> bool:
        """Whether the message has more bytes than are read of one."""
        return self.size > LARGEST_MESSAGE

    def take(self) -> bytes:
        """Return the message, or the edges of one that is too large, and begin the next one."""
        message = self._start + self._end if self.is_too_large else b"".join(self._parts)
        self.__init__()
        return message


def usable(message: bytes) -> bytes:
    """Return a small message as the SDK can read it: what it can't read, it drops, and the caller waits in vain.

    Halves of characters, which servers that cut texts send, become replacement characters. An answer of another shape
    than the protocol's, or one that isn't JSON or nests too deeply, becomes an error.
    """
    ending = message[len(message.rstrip()) :]
    changed = message
    try:
        data: object = from_json(message)
    except ValueError as error:
        try:
            changed = json.dumps(replace_surrogates_in_data(json.loads(message))).encode() + ending
            data = from_json(changed)
        except (ValueError, RecursionError):
            refused = refusal_of(message.rstrip(), f"the server's answer can't be read: {error}")
            return message if refused is None else refused + ending
    if not isinstance(data, dict):
        return message
    answer = cast("dict[str, object]", data)
    request_id = answer.get("id")
    if request_id is None or "method" in answer or _has_shape(answer):
        return changed
    return refusal(request_id, _NO_ANSWER) + ending


def _has_shape(answer: Mapping[str, object]) -> bool:
    """Whether an answer has a result that is an object, or an error with a number and a text."""
    error = answer.get("error")
    if error is None:
        return isinstance(answer.get("result"), dict)
    if not isinstance(error, dict):
        return False
    fields = cast("dict[str, object]", error)
    return isinstance(fields.get("code"), int) and isinstance(fields.get("message"), str)


def begins_answer(start: bytes) -> bool:
    """Whether a message that starts like this is an answer."""
    return _START.match(start[:EDGE]) is not None


def refusal_of(edges: bytes, problem: str, request_id: object = None) -> bytes | None:
    """Return the error that takes the place of an answer that isn't read; None if the message answers nothing.

    Args:
        edges: The edges of the message.
        problem: Why it isn't read.
        request_id: The id of the request that it answers, if that is known.
    """
    answered = _answered(_START.match(edges[:EDGE]), _END.search(edges[-EDGE:]), request_id)
    return None if answered is None else refusal(answered, problem)


def refusal(request_id: object, problem: str) -> bytes:
    """Return an error that answers a request in the server's place."""
    error = {"code": -32000, "message": problem, "data": REFUSED}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()


def _answered(start: re.Match[bytes] | None, end: re.Match[bytes] | None, request_id: object) -> object:
    """The id of the request that a message answers."""
    if request_id is not None or start is None:
        return request_id
    found = (end["id"] if end is not None else None) or start["id"]
    return None if found is None else json.loads(found)

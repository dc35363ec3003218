"""The message in a provider's error body, whatever form the body has: one line, safe to show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import unescape
from http import HTTPStatus
from typing import cast

from llm_do.text.sanitizer import escape_controls

__all__ = ["document_words", "provider_words", "short_words", "with_status"]

MAX_MESSAGE = 300
"""Characters of a provider's message that are shown."""

LONGEST_BODY = 20_000
"""Characters of a body that are read: the message is near the beginning, and a web page may be long."""

DEEPEST = 6
"""Levels of a body that are searched."""

MESSAGE_KEYS = (
    "message",
    "error_description",
    "detail",
    "error",
    "errors",
    "msg",
    "faultstring",
    "fault",
    "description",
    "reason",
    "title",
    "details",
)
"""Keys that hold a message, or the object that has it, the most specific first; case doesn't matter."""

WEB_PAGE = "a web page"

_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def provider_words(body: object, *, any_form: bool = True) -> str:
    """Return the message in an error body.

    Args:
        body: JSON data or text.
        any_form: Return all of a body whose form is unknown; otherwise nothing of it.

    Example:
        >>> provider_words({"error": {"message": "slow down"}}), provider_words([{"detail": "busy"}])
        ('slow down', 'busy')
        >>> provider_words("<html><head><title>502 Bad Gateway</title></head></html>")
        'a web page: 502 Bad Gateway'
    """
    words = _find(body, 0)
    if not words and any_form and isinstance(body, Mapping | Sequence) and body:
        with suppress(RecursionError):
            words = json.dumps(body, ensure_ascii=False, default=str)
    return short_words(words)


def document_words(text: str) -> str:
    """Return what to say of an answer that should have been JSON.

    Example:
        >>> document_words("upstream failed")
        "the answer isn't JSON: upstream failed"
    """
    words = provider_words(text)
    if words.startswith(WEB_PAGE):
        return f"the server answered with {words}"
    return f"the answer isn't JSON: {words}" if words else "the answer is empty"


def short_words(text: str) -> str:
    r"""Return a provider's text on one line, cut to what is shown and without characters that act on a terminal.

    Example:
        >>> print(short_words("no\n such \x1b[2Jmodel"))
        no such \x1b[2Jmodel
    """
    line = escape_controls(" ".join(text[:LONGEST_BODY].split()))
    return line if len(line) <= MAX_MESSAGE else line[:MAX_MESSAGE] + "..."


def with_status(status: int | None, words: str) -> str:
    """Return a provider's words after the HTTP status.

    Example:
        >>> with_status(429, "slow down"), with_status(503, ""), with_status(None, "busy")
        ('HTTP 429: slow down', 'HTTP 503 (Service Unavailable)', 'busy')
    """
    if status is None:
        return words
    if words:
        return f"HTTP {status}: {words}"
    name = next((each.phrase for each in HTTPStatus if each == status), "")
    return f"HTTP {status} ({name})" if name else f"HTTP {status}"


def _find(body: object, depth: int) -> str:
    if depth > DEEPEST:
        return ""
    if isinstance(body, bytes):
        body = body[:LONGEST_BODY].decode("utf-8", "replace")
    if isinstance(body, str):
        return _of_text(body[:LONGEST_BODY], depth)
    if isinstance(body, Mapping):
        return _of_mapping(cast("Mapping[object, object]", body), depth)
    if isinstance(body, Sequence):
        members = [_find(member, depth + 1) for member in cast("Sequence[object]", body)[:3]]
        return "; ".join(dict.fromkeys(filter(None, members)))
    return ""


def _of_text(text: str, depth: int) -> str:
    """Some gateways put the body of the server behind them into their message as text."""
    if _PAGE.match(text[:200]):
        title = _TITLE.search(text)
        shown = unescape(title[1] if title else _TAG.sub(" ", _UNSEEN.sub(" ", text)))
        return f"{WEB_PAGE}: {' '.join(shown.split())[:200]}"
    if text.lstrip().startswith(("{", "[")):
        try:
            return _find(json.loads(text), depth + 1) or text
        except (ValueError, RecursionError):
            return text
    return text


def _of_mapping(body: Mapping[object, object], depth: int) -> str:
    fields = {key.lower(): value for key, value in body.items() if isinstance(key, str)}
    words = next(filter(None, (_find(fields.get(key), depth + 1) for key in MESSAGE_KEYS)), "")
    if not words:
        return ""
    # A field of the request that the message is about (FastAPI), and the words of the server behind a router.
    place = fields.get("loc")
    if isinstance(place, list | tuple) and place:
        words = f"{'.'.join(map(str, cast('Sequence[object]', place)))}: {words}"
    metadata = fields.get("metadata")
    behind = (
        _find(cast("Mapping[object, object]", metadata).get("raw"), depth + 1) if isinstance(metadata, Mapping) else ""
    )
    return f"{words}: {behind}" if behind and behind != words else words

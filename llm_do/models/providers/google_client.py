"""A check of answers in Google's protocol: one with status 200 that is none raises an error with its words."""

from __future__ import annotations

import json
import re
from typing import Any, cast
from urllib.parse import unquote

import httpx2
from pydantic_ai.exceptions import ModelAPIError

from llm_do._warnings import suppress_warning
from llm_do.models.providers.chat.answers import error_in
from llm_do.models.providers.provider_words import document_words, provider_words

__all__ = ["check_answers"]

_MODEL = re.compile(r"/models/([^:]+):(?:stream)?[gG]enerateContent$")
_UNKNOWN_VALUE = re.compile(r".* is not a valid \w+$")
"""What the SDK warns of when Google's protocol has grown; such a value counts as an unknown one."""

_ANSWER_KEYS = ("candidates", "promptFeedback")


def check_answers(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Let a client check what it receives; each client once."""
    hooks = client.event_hooks
    if _check not in hooks["response"]:
        client.event_hooks = {**hooks, "response": [*hooks["response"], _check]}
    return client


async def _check(response: httpx2.Response) -> None:
    suppress_warning(_UNKNOWN_VALUE, UserWarning)
    found = _MODEL.search(unquote(response.request.url.path))
    if response.status_code != 200 or found is None:
        return
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return
    await response.aread()
    text = response.text
    if text.startswith("data:"):
        return
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelAPIError(found[1], document_words(text)) from None
    error = error_in(data)
    status = cast("dict[str, Any]", error).get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 600:
        response.status_code = status  # the SDK's error for it says what kind of failure it is
    elif error or not isinstance(data, dict) or not any(key in data for key in _ANSWER_KEYS):
        words = provider_words(cast("object", error or data))
        raise ModelAPIError(found[1], words or "the answer has no candidates")

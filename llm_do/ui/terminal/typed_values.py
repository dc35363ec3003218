"""What a person types as a value, where it may be JSON or plain text."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["json_or_text"]


def json_or_text(text: str) -> Any:
    """Parse a text as JSON; the text itself if it isn't JSON.

    Example:
        >>> json_or_text("[1, 2]"), json_or_text("Oslo"), json_or_text("NaN")
        ([1, 2], 'Oslo', 'NaN')
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")

"""JSON that a person or a program gives as an input, read without what Python accepts in addition."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_strictly"]


def parse_strictly(text: str) -> object:
    """Parse JSON in which no key appears twice, and no number is `NaN` or infinite.

    Args:
        text: The JSON.

    Raises:
        ValueError: It isn't JSON; a `json.JSONDecodeError` says where.
        RecursionError: It is nested too deeply.

    Example:
        >>> parse_strictly('{"a": [1, null]}')
        {'a': [1, None]}
        >>> parse_strictly('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        ValueError: the key "a" appears twice
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {json.dumps(key)} appears twice")
            seen.add(key)
    return found

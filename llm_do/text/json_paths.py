"""Paths into JSON data, such as `$.items[0].total`: a small part of JSONPath, without wildcards."""

from __future__ import annotations

import json
import re
from typing import TypeAlias, cast

__all__ = ["JsonPath", "JsonPathError", "parse_json_path", "value_at"]

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes, from the root."""

_STEP = re.compile(r"""\.(?P<name>[^\W\d][\w-]*)|\[(?P<index>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*"|'[^']*')\]""")


class JsonPathError(ValueError):
    """A text isn't a path, or leads to nothing."""


def parse_json_path(text: str) -> JsonPath:
    """Read a path.

    Raises:
        JsonPathError: It isn't one.

    Example:
        >>> parse_json_path('$.items[0]["net total"]')
        ('items', 0, 'net total')
    """
    if not text.startswith("$"):
        raise JsonPathError("it doesn't begin with `$`")
    path: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise JsonPathError(f'`{text[at : at + 20]}` is neither `.name` nor `[index]` nor `["name"]`')
        quoted = found["quoted"]
        if found["index"] is not None:
            path.append(int(found["index"]))
        else:
            path.append(found["name"] or (json.loads(quoted) if quoted[0] == '"' else quoted[1:-1]))
        at = found.end()
    return tuple(path)


def value_at(data: object, path: JsonPath) -> object:
    """The value at a path.

    Raises:
        JsonPathError: There is none; the error says from where on.

    Example:
        >>> value_at({"items": [{"total": 42}]}, ("items", -1, "total"))
        42
    """
    shown = "$"
    for part in path:
        if isinstance(part, str) and isinstance(data, dict):
            keys = cast("dict[str, object]", data)
            if part not in keys:
                raise JsonPathError(f"{shown} has no key {json.dumps(part, ensure_ascii=False)}")
            data = keys[part]
        elif isinstance(part, int) and isinstance(data, list):
            items = cast("list[object]", data)
            if not -len(items) <= part < len(items):
                raise JsonPathError(f"{shown} has {len(items)} items")
            data = items[part]
        else:
            raise JsonPathError(f"{shown} is {_kind(data)}")
        shown += f".{part}" if isinstance(part, str) else f"[{part}]"
    return data


def _kind(data: object) -> str:
    if isinstance(data, dict | list):
        return "an object" if isinstance(data, dict) else "a list"
    if data is None or isinstance(data, bool):
        return {None: "null", True: "true", False: "false"}[data]
    return "text" if isinstance(data, str) else "a number"

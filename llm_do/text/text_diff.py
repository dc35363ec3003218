"""The difference between two values as lines."""

from __future__ import annotations

import difflib
import json

__all__ = ["text_diff"]


def text_diff(before: object, after: object, old: str, new: str) -> list[str]:
    """The unified diff of two values, of which texts are compared by line and data as indented JSON; None is nothing.

    Args:
        before: The old value.
        after: The new value.
        old: What the old value is called.
        new: What the new value is called.

    Example:
        >>> text_diff("be brief", "be kind", "recorded", "now")[2:]
        ['@@ -1 +1 @@', '-be brief', '+be kind']
    """
    return list(difflib.unified_diff(_lines(before), _lines(after), old, new, lineterm="", n=2))


def _lines(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return json.dumps(value, indent=1, ensure_ascii=False).splitlines()

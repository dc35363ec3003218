"""Text that can be written down: halves of characters, which models, tools and file names bring along, are replaced.

A lone surrogate can be in a string and in no file, request or terminal. Nothing else of a text is changed here.
"""

from __future__ import annotations

from typing import Any, cast

__all__ = ["has_surrogates", "replace_surrogates", "replace_surrogates_in_data"]


def has_surrogates(text: str) -> bool:
    """Whether a text has lone surrogates.

    Example:
        >>> has_surrogates("a😀b"), has_surrogates("a\\ud800b")
        (False, True)
    """
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def replace_surrogates(text: str) -> str:
    """A text without lone surrogates; two that make a character together become it.

    Example:
        >>> replace_surrogates("a\\ud83d\\ude00b"), replace_surrogates("a\\ud800b") == "a\\ufffdb"
        ('a😀b', True)
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if has_surrogates(text) else text


def replace_surrogates_in_data(value: Any) -> Any:
    """JSON data whose texts, names of fields included, have no lone surrogates; other values stay what they are."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            replace_surrogates_in_data(key): replace_surrogates_in_data(item)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list):
        return [replace_surrogates_in_data(item) for item in cast("list[Any]", value)]
    return value

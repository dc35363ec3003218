"""The width of text on a terminal: measuring, truncating and wrapping text that is sanitized already, or is here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from llm_do.text.sanitizer import sanitize

__all__ = ["call_text", "character_width", "pad", "shorten_middle", "text_width", "truncate", "wrap", "wrap_words"]


def character_width(char: str) -> int:
    """How many columns a character takes.

    Example:
        >>> character_width("a"), character_width("漢"), character_width("\u0301")
        (1, 2, 0)
    """
    if " " <= char <= "~":
        return 1
    # Imported here: its tables take longer to load than all else that a plain line needs.
    from wcwidth import wcwidth

    return max(wcwidth(char), 0)


def text_width(text: str) -> int:
    """How many columns a line takes.

    Example:
        >>> text_width("漢字 ok")
        7
    """
    return sum(map(character_width, text))


def pad(text: str, columns: int) -> str:
    """Fill a text up with blanks to a number of columns; a format such as `{text:<9}` counts characters instead.

    Example:
        >>> pad("漢字", 6) + "|"
        '漢字  |'
    """
    return text + " " * (columns - text_width(text))


def truncate(text: str, columns: int) -> str:
    """Cut a text to a number of columns, with an ellipsis where it was longer.

    Example:
        >>> truncate("abcdef", 4)
        'abc…'
    """
    if len(text) * 2 <= columns or text_width(text) <= columns:
        return text
    used, kept = 1, 0
    for char in text:
        used += character_width(char)
        if used > columns:
            break
        kept += 1
    return text[:kept] + "…"


def wrap(text: str, columns: int) -> Iterator[str]:
    """Break one line into pieces that fit into the columns; at least one piece, and nothing is left out.

    Example:
        >>> list(wrap("abcdef", 4))
        ['abcd', 'ef']
    """
    start, used = 0, 0
    for index, char in enumerate(text):
        size = character_width(char)
        if used + size > columns and index > start:
            yield text[start:index]
            start, used = index, 0
        used += size
    yield text[start:]


def wrap_words(text: str, columns: int) -> Iterator[str]:
    """Break one line of prose between words; a word that is longer than a line is broken anywhere.

    Example:
        >>> list(wrap_words("one two three", 8))
        ['one two', 'three']
    """
    left = text
    while True:
        piece = next(wrap(left, columns))
        end = len(piece)
        if end < len(left) and left[end] != " ":
            blank = max(piece.rfind(" "), 0)
            end = blank if piece[:blank].strip(" ") else end
        yield left[:end].rstrip(" ") if end < len(left) else left
        left = left[end:].lstrip(" ")
        if not left:
            return


def shorten_middle(value: object, limit: int = 160) -> str:
    """Format a value on one line, sanitized and cut at its end.

    Example:
        >>> shorten_middle({"a": [1, 2]}), shorten_middle("one\\ntwo", 6)
        ('{"a":[1,2]}', 'one\\\\n…')
    """
    text = value if isinstance(value, str) else _as_json(value)
    return _cut_characters(sanitize(text[: limit + 1]), limit)


def _cut_characters(text: str, limit: int) -> str:
    """Cut a text to a number of characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def call_text(tool: str, args: object, limit: int = 160) -> str:
    """Format a tool call on one line, cut at its end.

    Example:
        >>> call_text("add", {"a": 1, "b": "x"})
        'add(a=1, b="x")'
    """
    if isinstance(args, str):
        try:
            args = json.loads(args) if args else {}
        except (ValueError, RecursionError):
            return f"{sanitize(tool)}({shorten_middle(args, limit)})"
    if not isinstance(args, Mapping):
        return f"{sanitize(tool)}({shorten_middle(args, limit)})"
    parts: list[str] = []
    room = limit
    for name, value in args.items():  # pyright: ignore[reportUnknownVariableType]
        if room <= 0:
            break
        if isinstance(value, str):
            text = sanitize(value[: limit + 1]).replace('"', '\\"')
            shown = f'"{text}"'
        else:
            shown = sanitize(_as_json(value))  # pyright: ignore[reportUnknownArgumentType]
        parts.append(f"{sanitize(str(name))}={shown[: limit + 1]}")  # pyright: ignore[reportUnknownArgumentType]
        room -= len(parts[-1])
    return f"{sanitize(tool)}({_cut_characters(', '.join(parts), limit)})"


def _as_json(value: object) -> str:
    from llm_do.text.canonical_json import canonical_json

    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        return str(value)

"""Replacing what a pattern matches in a large text, in pieces: a search keeps the interpreter's lock until it ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

__all__ = ["PIECE", "replace_matches"]

PIECE = 2**18
"""Characters that are searched in one go; that takes a few milliseconds."""

Replace = Callable[[re.Match[str]], str]


def replace_matches(pattern: re.Pattern[str], replace: Replace, text: str, longest: int) -> str:
    """Return `pattern.sub(replace, text)`; a large text is searched in pieces.

    Args:
        pattern: The pattern, which doesn't look at what is around a match, and matches no empty text.
        replace: What a match becomes.
        text: The text.
        longest: The characters that are enough to tell a match; a longer one is found by its beginning.

    Example:
        >>> replace_matches(re.compile("key-[0-9]+"), lambda found: "…", "a key-123456 b", 8)
        'a … b'
    """
    if len(text) <= PIECE:
        return pattern.sub(replace, text)
    return "".join(_replaced(pattern, replace, text, longest))


def _replaced(pattern: re.Pattern[str], replace: Replace, text: str, longest: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end, known = min(start + PIECE, len(text)), min(start + PIECE + longest, len(text))
        while (found := pattern.search(text, start, known)) is not None and found.start() < end:
            # Matched again, as what is searched may end within it: it can't be seen whether it would go on.
            found = pattern.match(text, found.start()) or found
            yield text[start : found.start()]
            yield replace(found)
            start = found.end()
        yield text[start:end]
        start = max(start, end)

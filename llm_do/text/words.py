"""Words in messages: which name was meant, and a noun with its article."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["closest_match", "did_you_mean", "with_article"]

_PARTS = re.compile(r"[\s_.-]+")
_LEAST_PREFIX = 4
"""Characters that two words have to begin with for one to stand for the other, such as `desc` for `description`."""

_LONGEST = 100
"""Characters of a word that are looked at."""


def closest_match(word: str, words: Iterable[str], *, spelling_only: bool = False) -> str | None:
    """The word that was most likely meant by `word`, None when none is.

    That is one with another case or separator, with a typing error for every three letters, with the same parts in
    another order, or one that begins in the same way. With `spelling_only` it is one with a typing error or two.

    Example:
        >>> closest_match("serach", ["search", "write"]), closest_match("file_write", ["read_file", "write_file"])
        ('search', 'write_file')
        >>> closest_match("foo", ["tools", "thread"]) is None
        True
    """
    ranked = [
        (rank, index, candidate)
        for index, candidate in enumerate(words)
        if (rank := _rank(word, candidate, spelling_only=spelling_only)) is not None
    ]
    return min(ranked)[2] if ranked else None


def _rank(word: str, candidate: str, *, spelling_only: bool) -> tuple[int, int] | None:
    """How far apart two words are, None if one doesn't stand for the other."""
    a, b = word.casefold()[:_LONGEST], candidate.casefold()[:_LONGEST]
    parts, others = _PARTS.split(a), _PARTS.split(b)
    if parts == others:
        return 0, 0
    longest = max(len(a), len(b))
    allowed = 1 + longest // 12 if spelling_only else longest // 3
    if abs(len(a) - len(b)) <= allowed:
        distance = _distance(a, b)
        if distance <= allowed:
            return 1, distance
    if spelling_only:
        return None
    if sorted(parts) == sorted(others):
        return 2, 0
    shorter = min(len(a), len(b))
    if shorter >= _LEAST_PREFIX and a[:shorter] == b[:shorter]:
        return 3, abs(len(a) - len(b))
    return None


def _distance(a: str, b: str) -> int:
    """How many characters have to be inserted, removed, replaced or swapped with their neighbour."""
    older: list[int] = []
    old = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(old[j] + 1, row[j - 1] + 1, old[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        older, old = old, row
    return old[-1]


def did_you_mean(name: str, among: Iterable[str]) -> str | None:
    """A hint that names what was most likely meant by `name`, None when nothing was.

    Example:
        >>> did_you_mean("serach", ["search", "write"])
        'did you mean `search`?'
    """
    close = closest_match(name, among)
    return f"did you mean `{close}`?" if close else None


def with_article(noun: str) -> str:
    """A noun with its article.

    Example:
        >>> with_article("agent"), with_article("flow")
        ('an agent', 'a flow')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"

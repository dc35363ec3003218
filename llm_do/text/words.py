"""Words in messages: which name was meant, a noun with its article or its number, a text cut short, and a place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

__all__ = ["closest_match", "did_you_mean", "place_text", "truncate_end", "which_name", "with_article", "with_count"]

_PARTS = re.compile(r"[\s_.-]+")
_SEPARATORS = frozenset(" \t\n_.-")
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
    a = word.casefold()[:_LONGEST]
    letters = frozenset(a)
    best: tuple[tuple[int, int], str] | None = None
    for candidate in words:
        b = candidate.casefold()[:_LONGEST]
        # Comparing two words is slow, and most are too long, or have too many letters that the other hasn't.
        different, allowed = len(letters.symmetric_difference(b) - _SEPARATORS), _allowed(a, b, spelling_only)
        is_far = different > 2 * allowed or (different > 0 and abs(len(a) - len(b)) > allowed)
        if is_far and (spelling_only or not _begin_alike(a, b)):
            continue
        rank = _rank(a, b, spelling_only=spelling_only)
        if rank is not None and (best is None or rank < best[0]):
            best = rank, candidate
    return best[1] if best is not None else None


def _allowed(a: str, b: str, spelling_only: bool) -> int:
    """How many typing errors two words may be apart."""
    longest = max(len(a), len(b))
    return 1 + longest // 12 if spelling_only else longest // 3


def _begin_alike(a: str, b: str) -> bool:
    shorter = min(len(a), len(b))
    return shorter >= _LEAST_PREFIX and a[:shorter] == b[:shorter]


def _rank(a: str, b: str, *, spelling_only: bool) -> tuple[int, int] | None:
    """How far apart two words are, None if one doesn't stand for the other."""
    parts, others = _PARTS.split(a), _PARTS.split(b)
    if parts == others:
        return 0, 0
    allowed = _allowed(a, b, spelling_only)
    if abs(len(a) - len(b)) <= allowed:
        distance = _distance(a, b)
        if distance <= allowed:
            return 1, distance
    if spelling_only:
        return None
    if sorted(parts) == sorted(others):
        return 2, 0
    if _begin_alike(a, b):
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


def which_name(name: str, known: Collection[str]) -> str:
    """A hint about a name that nothing has: the nearest one, or all that there are.

    Example:
        >>> which_name("serach", ["search", "write"]), which_name("x", ["search", "write"])
        ('did you mean `search`?', 'Known names: search, write.')
        >>> which_name("x", [])
        'Agents, flows and exported functions have names, and there are none.'
    """
    if not known:
        return "Agents, flows and exported functions have names, and there are none."
    return did_you_mean(name, known) or f"Known names: {', '.join(known)}."


def with_article(noun: str) -> str:
    """A noun with its article.

    Example:
        >>> with_article("agent"), with_article("flow")
        ('an agent', 'a flow')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"


def with_count(number: int, noun: str) -> str:
    """A number and its noun, which gets an `s` unless there is one.

    Example:
        >>> with_count(1, "tool call"), with_count(1200, "token"), with_count(0, "step")
        ('1 tool call', '1,200 tokens', '0 steps')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def truncate_end(text: str, most: int = 60, *, end: str = "...") -> str:
    """A text of at most `most` characters, with `end` where the rest is left out.

    Example:
        >>> truncate_end("a long text", 8), truncate_end("short", 8)
        ('a lon...', 'short')
    """
    return text if len(text) <= most else f"{text[: most - len(end)]}{end}"


def place_text(file: str | None, line: int | None) -> str:
    """A place in parentheses, to be appended to a sentence; empty if it isn't known.

    Example:
        >>> place_text("main.py", 3), place_text("main.py", None), place_text(None, None)
        (' (main.py:3)', ' (main.py)', '')
    """
    if file is None:
        return ""
    return f" ({file}:{line})" if line else f" ({file})"

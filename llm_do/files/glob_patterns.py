"""Glob patterns over POSIX paths, matched in bounded time.

The patterns come from models and from files in a project, so they are not turned into regular expressions: a
few stars would be enough to make one of those run for hours. Matching here backtracks to the last star only,
which is exact for globs, and so takes at most the product of the two lengths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from llm_do._frozen import frozen
from llm_do.files.refusals import FileRefusedError

__all__ = ["Glob", "expand_braces"]

Item = TypeVar("Item")
Token = TypeVar("Token")

_MAX_PATTERN = 1000
_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_CLASSES: dict[str, Callable[[str], bool]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "lower": str.islower,
    "upper": str.isupper,
    "space": str.isspace,
    "punct": lambda c: c.isascii() and c.isprintable() and not c.isalnum() and c != " ",
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}


@frozen
class _OneOf:
    """`?` or `[...]`: one character."""

    negated: bool = True
    ranges: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()

    def __call__(self, character: str) -> bool:
        found = any(low <= character <= high for low, high in self.ranges)
        return (found or any(_CLASSES[name](character) for name in self.classes)) != self.negated


@frozen
class Glob:
    """A pattern: `*` and `?` within a name, `[a-z]`, `[!a]`, `**` for any number of folders, `\\` to quote.

    Args:
        segments: One matcher a name; None is `**`.

    Example:
        >>> Glob.parse("src/**/*.py").matches("src/a/b/c.py")
        True
        >>> Glob.parse("src/**/*.py").matches("src/c.py")
        True
        >>> Glob.parse("*.py").matches("src/c.py")
        False
    """

    segments: tuple[tuple[str | _OneOf | None, ...] | None, ...]

    @classmethod
    def parse(cls, pattern: str) -> Glob:
        """Read a pattern."""
        if len(pattern) > _MAX_PATTERN:
            raise FileRefusedError(
                f"the pattern {pattern[:30]}...", f"it is longer than {_MAX_PATTERN} characters", reason="invalid"
            )
        return _parse(pattern)

    @property
    def depth(self) -> int | None:
        """How many names a path that matches has, None for any number."""
        return None if None in self.segments else len(self.segments)

    def matches(self, path: str) -> bool:
        """Whether the whole path matches."""
        return _backtrack(self.segments, path.split("/"), _matches_name)

    def matches_name(self, name: str) -> bool:
        """Whether one name matches the pattern's last segment."""
        last = self.segments[-1] if self.segments else ()
        return last is None or _matches_name(last, name)


def expand_braces(pattern: str) -> list[str]:
    """The patterns that one with `{a,b}` stands for.

    Example:
        >>> expand_braces("*.{md,txt}")
        ['*.md', '*.txt']
    """
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise FileRefusedError(
                f"the pattern {pattern[:60]}", f"it has more than {_MAX_ALTERNATIVES} alternatives", reason="invalid"
            )
        current = todo.pop(0)
        found = _BRACES.search(current)
        if found is None:
            done.append(current)
        else:
            before, after = current[: found.start()], current[found.end() :]
            todo[:0] = [before + choice + after for choice in found[1].split(",")]
    return done


@lru_cache(maxsize=1024)
def _parse(pattern: str) -> Glob:
    names = [name for name in pattern.split("/") if name]
    segments: list[tuple[str | _OneOf | None, ...] | None] = []
    for name in names:
        if len(name) < 2 or name.strip("*"):
            segments.append(_tokens(name))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    return Glob(tuple(segments))


def _tokens(name: str) -> tuple[str | _OneOf | None, ...]:
    tokens: list[str | _OneOf | None] = []
    at = 0
    while at < len(name):
        character = name[at]
        at += 1
        if character == "*":
            if not tokens or tokens[-1] is not None:
                tokens.append(None)
        elif character == "?":
            tokens.append(_OneOf())
        elif character == "[" and (read := _bracket(name, at)) is not None:
            token, at = read
            tokens.append(token)
        elif character == "\\" and at < len(name):
            tokens.append(name[at])
            at += 1
        else:
            tokens.append(character)
    return tuple(tokens)


def _bracket(name: str, at: int) -> tuple[_OneOf, int] | None:
    """Read what follows a `[`; None when nothing closes it, so that it is an ordinary character."""
    negated = name[at : at + 1] in ("!", "^")
    start = at = at + negated
    ranges: list[tuple[str, str]] = []
    classes: list[str] = []
    while at < len(name) and (name[at] != "]" or at == start):
        if name.startswith("[:", at) and (end := name.find(":]", at)) > 0 and name[at + 2 : end] in _CLASSES:
            classes.append(name[at + 2 : end])
            at = end + 2
            continue
        at += name[at] == "\\" and at + 1 < len(name)
        low = high = name[at]
        if name[at + 1 : at + 2] == "-" and name[at + 2 : at + 3] not in ("", "]"):
            at += 2
            at += name[at] == "\\" and at + 1 < len(name)
            high = name[at]
        ranges.append((low, high))
        at += 1
    if at >= len(name):
        return None
    return _OneOf(negated, tuple(ranges), tuple(classes)), at + 1


def _matches_name(tokens: Sequence[str | _OneOf | None], name: str) -> bool:
    return _backtrack(tokens, name, _matches_character)


def _matches_character(token: str | _OneOf, character: str) -> bool:
    return token == character if isinstance(token, str) else token(character)


def _backtrack(pattern: Sequence[Token | None], items: Sequence[Item], same: Callable[[Token, Item], bool]) -> bool:
    """Whether the items match, None in the pattern being any number of them."""
    at = item = 0
    star = retry = -1
    while item < len(items):
        if at < len(pattern):
            token = pattern[at]
            if token is None:
                star, retry = at, item
                at += 1
                continue
            if same(token, items[item]):
                at += 1
                item += 1
                continue
        if star < 0:
            return False
        retry += 1
        at, item = star + 1, retry
    return all(token is None for token in pattern[at:])

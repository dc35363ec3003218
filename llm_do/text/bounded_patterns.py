"""Regular expressions of unknown origin, such as a model's or a server's: bounded in time and memory.

The `regex` module matches them because it has timeouts: a few nested repetitions keep the standard module busy for
hours, and neither a signal nor another thread can stop it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol, cast

from llm_do._startup.frozen import frozen

__all__ = ["BoundedPattern", "PatternRefusedError", "compile_bounded"]

LONGEST = 1000
"""Characters that a pattern may have unless the caller allows more."""

# With recursion the matcher's memory grows until it times out.
_RECURSION = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")
# The matcher expands repetitions of a fixed number, groups within groups.
_REPEATED = re.compile(r"(.?)\s*\{\s*([\d\s]+)[^{}]*\}", re.DOTALL)
_MAX_WRITTEN_OUT = 500_000


class PatternRefusedError(ValueError):
    """Why a pattern isn't used, as the end of a sentence that begins with the pattern, and a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class _Match(Protocol):
    def start(self) -> int: ...


class _Compiled(Protocol):
    def search(self, string: str, *, timeout: float, concurrent: bool) -> _Match | None: ...


@frozen
class BoundedPattern:
    """A compiled pattern."""

    compiled: _Compiled

    def find(self, text: str, seconds: float) -> int | None:
        """Return where the first match begins, or None; raise `TimeoutError` if it isn't found in time.

        Example:
            >>> compile_bounded("b+").find("abb", 1.0)
            1
        """
        try:
            found = self.compiled.search(text, timeout=seconds, concurrent=True)
        except (MemoryError, RecursionError):
            raise PatternRefusedError("takes too much memory to match") from None
        return None if found is None else found.start()


@lru_cache(maxsize=1024)
def compile_bounded(pattern: str, longest: int = LONGEST) -> BoundedPattern:
    """Compile a pattern; raise `PatternRefusedError` if it is invalid or would need too much memory.

    Example:
        >>> compile_bounded("a{600}{1000}{1000}")
        Traceback (most recent call last):
        ...
        llm_do.text.bounded_patterns.PatternRefusedError: takes too much memory
    """
    import regex  # 20 ms that only its users pay for.

    if len(pattern) > longest:
        raise PatternRefusedError(f"is longer than {longest} characters")
    if _RECURSION.search(pattern):
        raise PatternRefusedError("is recursive, which is not supported")
    if _written_out(pattern) > _MAX_WRITTEN_OUT:
        raise PatternRefusedError("takes too much memory", "Repeat less, or no repetition.")
    try:
        return BoundedPattern(cast("_Compiled", regex.compile(pattern)))
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise PatternRefusedError(
            f"is not a valid regular expression ({error})",
            "Put a backslash before a character that stands for itself.",
        ) from error


def _written_out(pattern: str) -> int:
    """Return an upper bound of the length of a pattern with its repetitions expanded."""
    groups, single = 1, len(pattern)
    commented = "#" in pattern and re.search(r"\(\?\w*x", pattern) is not None
    for before, least in _REPEATED.findall(pattern):
        times = max(int("".join(least.split())), 1)
        # A repetition after a group, another repetition or a comment may repeat the contents of the group.
        if commented or before in (")", "}", "?", "+", "*", ""):
            groups *= times
        else:
            single += times
    return groups * single

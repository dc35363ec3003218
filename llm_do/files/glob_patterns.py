"""Glob patterns for POSIX paths, as in `.gitignore` files and in the tools that list and search files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from llm_do.files.refusals import FileRefusedError
from llm_do.text.globs import Glob, match_segments, parse_glob

__all__ = ["PathPattern", "expand_braces", "matches_any_path"]

_MAX_PATTERN = 1000
_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True)
class PathPattern:
    """A pattern: a glob for each name of a path, or None for `**`, which matches any number of folders.

    Example:
        >>> PathPattern.parse("src/**/*.py").matches("src/a/b/c.py")
        True
        >>> PathPattern.parse("src/**/*.py").matches("src/c.py")
        True
        >>> PathPattern.parse("*.py").matches("src/c.py")
        False
    """

    segments: tuple[Glob | None, ...]

    @classmethod
    def parse(cls, pattern: str) -> PathPattern:
        """Parse a pattern."""
        if len(pattern) > _MAX_PATTERN:
            raise FileRefusedError(
                f"the pattern {pattern[:30]}...", f"it is longer than {_MAX_PATTERN} characters", reason="invalid"
            )
        return _parse(pattern)

    @property
    def depth(self) -> int | None:
        """The number of names in a matching path; None for any number."""
        return None if None in self.segments else len(self.segments)

    def matches(self, path: str) -> bool:
        """Whether a path matches."""
        return match_segments(self.segments, path.split("/"))

    def matches_name(self, name: str) -> bool:
        """Whether a name matches the last segment."""
        last = self.segments[-1] if self.segments else Glob(())
        return last is None or last.matches(name)


def matches_any_path(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a path; one without `/` matches files and folders at any depth.

    Example:
        >>> matches_any_path("web/.npmrc", [".npmrc"]), matches_any_path("web/.npmrc", ["src/.npmrc"])
        (True, False)
    """
    for pattern in patterns:
        glob = PathPattern.parse(pattern)
        if glob.matches(path) or ("/" not in pattern and any(map(glob.matches_name, path.split("/")))):
            return True
    return False


def expand_braces(pattern: str) -> list[str]:
    """Expand the alternatives of a pattern with `{a,b}`.

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
def _parse(pattern: str) -> PathPattern:
    segments: list[Glob | None] = []
    for name in filter(None, pattern.split("/")):
        if len(name) < 2 or name.strip("*"):
            segments.append(parse_glob(name))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    return PathPattern(tuple(segments))

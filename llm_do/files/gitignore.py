"""Rules for files that listings omit: `.git`, `.llm-do`, virtual environments, and matches of `.gitignore` files.

The rules are Git's. They affect only listing and searching, not whether a file may be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do._startup.frozen import frozen
from llm_do.files.glob_patterns import PathPattern
from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError

__all__ = ["IGNORE_FILE", "IgnoreRule", "is_ignored", "is_never_listed", "parse_rules"]

IGNORE_FILE = ".gitignore"

_NEVER = frozenset({".git", ".llm-do", ".venv"})
_MAX_RULES = 2000


@frozen
class IgnoreRule:
    """One line of a `.gitignore` file."""

    base: str
    """The folder of the file, as a POSIX path below the root; empty for the root."""

    pattern: PathPattern
    anchored: bool
    """Whether the pattern matches paths below `base`, or else names at any depth."""

    folders_only: bool
    negated: bool
    """Whether it includes again what an earlier line ignores."""

    def applies(self, path: str, *, folder: bool) -> bool:
        """Whether the rule matches a path."""
        if self.folders_only and not folder:
            return False
        if self.base:
            if not path.startswith(self.base + "/"):
                return False
            path = path[len(self.base) + 1 :]
        return self.pattern.matches(path) if self.anchored else self.pattern.matches_name(path.rpartition("/")[2])


def parse_rules(lines: Iterable[str], base: str = "") -> tuple[IgnoreRule, ...]:
    """Parse the lines of a `.gitignore` file, or patterns in the same syntax.

    Example:
        >>> rules = parse_rules(["*.log", "!keep.log", "/build/"])
        >>> [is_ignored(rules, path, folder=False) for path in ("a/x.log", "keep.log", "build")]
        [True, False, False]
        >>> is_ignored(rules, "build", folder=True)
        True
    """
    rules: list[IgnoreRule] = []
    for line in lines:
        if len(rules) == _MAX_RULES:
            break
        if (rule := _parse_rule(line, base)) is not None:
            rules.append(rule)
    return tuple(rules)


def is_ignored(rules: Sequence[IgnoreRule], path: str, *, folder: bool) -> bool:
    """Whether the last rule that matches a path ignores it."""
    return next((not rule.negated for rule in reversed(rules) if rule.applies(path, folder=folder)), False)


def is_never_listed(name: str) -> bool:
    """Whether listings always omit a folder or file of this name.

    Example:
        >>> is_never_listed(".GIT"), is_never_listed(".github")
        (True, False)
    """
    return fold_name(name) in _NEVER


def _parse_rule(line: str, base: str) -> IgnoreRule | None:
    text = _without_trailing_space(line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text.strip("/"):
        return None
    anchored = "/" in text
    # `a/**` is everything in `a`, not `a` itself.
    inside = anchored and text.endswith("/**")
    try:
        pattern = PathPattern.parse(text + "/*" if inside else text)
    except FileRefusedError:
        return None
    return IgnoreRule(base, pattern, anchored, folders_only, negated)


def _without_trailing_space(line: str) -> str:
    stripped = line.rstrip(" ")
    quoted = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if quoted % 2 and len(line) > len(stripped) else stripped

"""What listings leave out: `.git`, `.llm-do`, virtual environments, and what `.gitignore` files name.

The rules are Git's. They only concern listing and searching; whether a file may be read is not decided here.
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
    """One line of a `.gitignore` file.

    Args:
        base: The folder of the file, in POSIX form below the root, empty for the root.
        pattern: What it names.
        anchored: It names paths from `base`; else names at any depth.
        folders_only: It names folders only.
        negated: It includes again what an earlier line ignores.
    """

    base: str
    pattern: PathPattern
    anchored: bool
    folders_only: bool
    negated: bool

    def applies(self, path: str, *, folder: bool) -> bool:
        """Whether the line names this path."""
        if self.folders_only and not folder:
            return False
        if self.base:
            if not path.startswith(self.base + "/"):
                return False
            path = path[len(self.base) + 1 :]
        return self.pattern.matches(path) if self.anchored else self.pattern.matches_name(path.rpartition("/")[2])


def parse_rules(lines: Iterable[str], base: str = "") -> tuple[IgnoreRule, ...]:
    """Read the lines of a `.gitignore` file, or patterns written the same way.

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
    """Whether the last rule that names a path ignores it."""
    return next((not rule.negated for rule in reversed(rules) if rule.applies(path, folder=folder)), False)


def is_never_listed(name: str) -> bool:
    """Whether a folder or file of this name is never listed.

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

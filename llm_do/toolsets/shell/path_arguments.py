"""Find out where the paths in a command lead, by resolving every word that may be a path below the root.

The rule of a known program says which words are paths; for any other program, all parts of all words are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.secrets import secret_file

__all__ = ["directory_below_root", "first_path_outside", "leads_to_secret", "looks_outside", "possible_paths"]

_PARTS = re.compile(r"[=:,@]")
_HOME = re.compile(r"(?:^|[=:,@])~")
_LETTERS = re.compile(r"-[A-Za-z0-9]{1,32}")
"""The letters of the options in one word; the rest of the word may be the value of any of them."""


def directory_below_root(root: Root, cwd: str) -> str:
    """Return the real path of a working directory below the root, where `.` is the root.

    A directory that is outside or isn't a folder raises `FileRefusedError`.
    """
    found = root.stat(cwd)
    if found.kind != "folder":
        raise FileRefusedError(cwd, "it is not a folder", reason="not_a_folder")
    return found.path


def possible_paths(argv: Sequence[str]) -> Iterator[str]:
    """Yield what may be a path in a command: words, their parts after `=`, `:`, `,` or `@`, and the ends of options.

    Example:
        >>> list(possible_paths(["cc", "-I../x", "--out=/y", "host:z", "-rfa"]))
        ['../x', '/y', 'host:z', 'z', 'fa', 'a']
    """
    for word in argv[1:]:
        if word.startswith("--"):
            parts = _PARTS.split(word)[1:]
        elif word.startswith("-"):
            letters = _LETTERS.match(word)
            tails = [word[at:] for at in range(2, letters.end() + 1)] if letters is not None else [word[2:]]
            parts = [*tails, *_PARTS.split(word)[1:]]
        else:
            parts = [word, *_PARTS.split(word)[1:]]
        yield from (part for part in dict.fromkeys(parts) if part)


def first_path_outside(root: Root, cwd: str, paths: Iterable[str]) -> str | None:
    """Return the first path, relative to `cwd`, that leads outside the root, or None if all stay inside."""
    for path in paths:
        joined = path if path.startswith("/") else str(PurePosixPath(cwd) / path) if cwd != "." else path
        # A shell expands a tilde to a home folder, but to a program it is an ordinary character.
        if joined.startswith("~"):
            joined = f"./{joined}"
        try:
            root.trail(joined)
        except FileRefusedError as error:
            if error.reason == "outside" or path.startswith(("/", "..")):
                return path
            if error.reason in ("changed", "permission", "failed"):
                return path
    return None


def leads_to_secret(root: Root, cwd: str, paths: Iterable[str]) -> str | None:
    """Return the first path, relative to `cwd`, that leads to a secret file through a link that hides it."""
    for path in paths:
        if secret_file(path) is not None or looks_outside(path):
            continue
        try:
            trail = root.trail(path if cwd == "." else f"{cwd}/{path}")
        except FileRefusedError:
            continue
        if any(secret_file("/".join(map(fold_name, place.split("/")))) for place in trail[1:]):
            return path
    return None


def looks_outside(path: str) -> bool:
    """Whether a path visibly may lead outside the root, so that a rule that allows it has spelled it out.

    Example:
        >>> looks_outside("/etc"), looks_outside("a/../b"), looks_outside("a/b")
        (True, True, False)
    """
    return path.startswith("/") or ".." in path.split("/") or _HOME.search(path) is not None

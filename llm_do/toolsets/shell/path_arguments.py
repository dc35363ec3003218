"""Where the paths in a command lead: every word of it that may be a path, looked up below the root by walking.

For a program whose words are known, its rule says which are paths; for any other, all parts of all words are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root

__all__ = ["directory_below_root", "first_path_outside", "looks_outside", "possible_paths"]

_PARTS = re.compile(r"[=:,@]")
_HOME = re.compile(r"(?:^|[=:,@])~")
_LETTERS = re.compile(r"-[A-Za-z0-9]{1,32}")
"""The options that one word may hold, any of which may have the rest of it for its value."""


def directory_below_root(root: Root, cwd: str) -> str:
    """A working directory as a POSIX path below the root.

    Args:
        root: The root.
        cwd: The directory as the model wrote it.

    Returns:
        The path where it really is; `.` is the root.

    Raises:
        FileRefusedError: It is outside, or no folder.
    """
    found = root.stat(cwd)
    if found.kind != "folder":
        raise FileRefusedError(cwd, "it is not a folder", reason="not_a_folder")
    return found.path


def possible_paths(argv: Sequence[str]) -> Iterator[str]:
    """All that may be a path in the words of a command: words, what follows a `=`, `:`, `,` or `@`, an option's tails.

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
    """The first path that leads outside the root.

    Args:
        root: The root.
        cwd: The working directory, a path below the root.
        paths: Paths as a program will read them from there.

    Returns:
        The path, None when all stay inside.
    """
    for path in paths:
        joined = path if path.startswith("/") else str(PurePosixPath(cwd) / path) if cwd != "." else path
        # A tilde that stands for a home folder in a shell is an ordinary character to a program.
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


def looks_outside(path: str) -> bool:
    """Whether a path says by its looks that it may lead outside: a rule that allows it has spelled it.

    Example:
        >>> looks_outside("/etc"), looks_outside("a/../b"), looks_outside("a/b")
        (True, True, False)
    """
    return path.startswith("/") or ".." in path.split("/") or _HOME.search(path) is not None

"""Find out where the paths in a command lead, by resolving every word that may be a path below the root."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.commands.command_reading import is_url, read_command
from llm_do.policy.secrets import secret_file
from llm_do.policy.values import Trail

__all__ = [
    "directory_below_root",
    "first_link_outside",
    "first_path_outside",
    "leads_to_secret",
    "looks_outside",
    "named_places",
    "possible_paths",
]

_MOST_VISITED = 5_000
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
    """Yield what may be a path in a command.

    The grammar of a known program says which words are. Others are read in every way: as a whole, in their parts after
    `=`, `:`, `,` or `@`, and as the ends of options.

    Example:
        >>> list(possible_paths(["cc", "-I../x", "--out=/y", "host:z", "-rfa"]))
        ['../x', '/y', 'host:z', 'z', 'fa', 'a']
        >>> list(possible_paths(["rg", "-n", "/api/v1", "src"])), list(possible_paths(["git", "fetch", "https://x.org/y"]))
        (['src'], [])
    """
    for role, text, _ in read_command(tuple(argv)).pieces:
        if role == "path":
            yield text
        elif role in ("any", "ref", "script", "launch"):
            yield from (part for part in dict.fromkeys((text, *_PARTS.split(text)[1:])) if part)
        elif role in ("unknown", "loose") and not is_url(text):
            yield from _parts_of_word(text)


def _parts_of_word(word: str) -> Iterator[str]:
    if word.startswith("--"):
        parts = _PARTS.split(word)[1:]
    elif word.startswith("-"):
        letters = _LETTERS.match(word)
        tails = [word[at:] for at in range(2, letters.end() + 1)] if letters is not None else [word[2:]]
        parts = [*tails, *_PARTS.split(word)[1:]]
    else:
        parts = [word, *_PARTS.split(word)[1:]]
    yield from (part for part in dict.fromkeys(parts) if part)


def first_link_outside(root: Root, cwd: str, argv: Sequence[str]) -> str | None:
    """Return the first link that leads outside the root, of those that a command which follows links would come to.

    If there are too many files to find out, return the folder.
    """
    reading = read_command(tuple(argv))
    if not reading.follows:
        return None
    waiting = [piece.text for piece in reading.pieces if piece.role in ("path", "any")] or ["."]
    seen: set[str] = set()
    visited = 0
    while waiting:
        path = waiting.pop()
        try:
            with root.folder(_below(cwd, path)) as (opened, real):
                entries = list(islice(opened.entries(), _MOST_VISITED + 1)) if real not in seen else []
                seen.add(real)
        except FileRefusedError:  # a file, or nothing; `first_path_outside` finds one that is outside
            continue
        visited += len(entries)
        if visited > _MOST_VISITED:
            return path
        for entry in entries:
            inner = f"{path}/{entry.name}"
            if entry.kind == "link" and first_path_outside(root, cwd, [inner]) is not None:
                return inner
            if entry.kind in ("link", "folder"):
                waiting.append(inner)
    return None


def _below(cwd: str, path: str) -> str:
    return path if path.startswith("/") else f"{cwd}/{path}"


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


def named_places(root: Root, cwd: str, argv: Sequence[str]) -> Iterator[tuple[str, Trail]]:
    """Yield the words of a command that may be paths inside the root, and where each leads."""
    for path in possible_paths(argv):
        with contextlib.suppress(FileRefusedError):
            yield path, root.place(path if path.startswith("/") or cwd == "." else f"{cwd}/{path}")


def looks_outside(path: str) -> bool:
    """Whether a path visibly may lead outside the root, so that a rule that allows it has spelled it out.

    Example:
        >>> looks_outside("/etc"), looks_outside("a/../b"), looks_outside("a/b")
        (True, True, False)
    """
    return path.startswith("/") or ".." in path.split("/") or _HOME.search(path) is not None

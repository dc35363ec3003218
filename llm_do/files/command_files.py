"""Which files of a folder the command of a server names, and whether it would load new code from there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from llm_do.files.code_files import is_python
from llm_do.files.unreviewed import is_below, unreviewed_files

__all__ = ["named_files", "unreviewed_code"]


def named_files(root: Path, words: Iterable[str]) -> tuple[str, ...]:
    """Return the paths below a folder, relative to it, that the words of a command may name; they needn't exist.

    A word may be a path, or have one after `=` or before `:`.

    Example:
        >>> named_files(Path("/p"), ["node", "/p/src/server.js", "--set=a.json", "main.py:app", "../x", "--port=1"])
        ('node', 'src/server.js', '--set=a.json', 'a.json', 'main.py:app', 'main.py', '--port=1', '1')
    """
    return tuple(dict.fromkeys(path for word in words for path in _paths(root, word)))


def unreviewed_code(root: Path, command: Sequence[str]) -> str | None:
    """Return code that no one has agreed to, and that a command which runs in `root` would or might load.

    That is a file that it names, and Python files beside one or below: Python looks there first for what is imported.
    A command that names none may run a module of `root` if it runs Python.
    """
    new = unreviewed_files(root)
    if not new:
        return None
    named = [path for path in named_files(root, command) if (root / path).is_file()]
    found = next((path for path in named if is_below(path, new)), None)
    if found is not None:
        return found
    folders = [os.path.dirname(path) for path in named]  # noqa: PTH120 - the empty one stands for the root
    if "-m" in command or (not named and any(_is_python(word) for word in command)):
        folders.append("")
    python = (path for path in new if is_python(path.rpartition("/")[2]) or (root / path).is_dir())
    return next((path for path in python if any(not each or is_below(path, [each]) for each in folders)), None)


def _paths(root: Path, word: str) -> Iterator[str]:
    for text in (word, word.partition("=")[2], word.partition(":")[0]):
        if text and "\0" not in text:
            path = os.path.relpath(os.path.join(root, text), root).replace(os.sep, "/")  # noqa: PTH118 - `Path` keeps `..`
            if path != "." and not f"{path}/".startswith("../"):
                yield path


def _is_python(word: str) -> bool:
    return word.replace(os.sep, "/").rpartition("/")[2].startswith("python")

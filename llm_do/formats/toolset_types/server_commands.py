"""Which files of a project the command of an MCP server names: they are its code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["named_files"]


def named_files(root: Path, words: Iterable[str]) -> tuple[str, ...]:
    """Return the paths below a folder, relative to it, that the words of a command may name; they needn't exist.

    A word may be a path, or have one after `=` or before `:`.

    Example:
        >>> named_files(Path("/p"), ["node", "/p/src/server.js", "--set=a.json", "main.py:app", "../x", "--port=1"])
        ('node', 'src/server.js', '--set=a.json', 'a.json', 'main.py:app', 'main.py', '--port=1', '1')
    """
    return tuple(dict.fromkeys(path for word in words for path in _paths(root, word)))


def _paths(root: Path, word: str) -> Iterator[str]:
    for text in (word, word.partition("=")[2], word.partition(":")[0]):
        if text and "\0" not in text:
            path = os.path.relpath(os.path.join(root, text), root).replace(os.sep, "/")  # noqa: PTH118 - `Path` keeps `..`
            if path != "." and not f"{path}/".startswith("../"):
                yield path

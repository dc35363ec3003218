"""Whether the command of a server would load new code of the project, which no one has agreed to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from llm_do.files.code_files import is_python
from llm_do.files.unreviewed import is_below, unreviewed_files
from llm_do.formats.toolset_types.server_commands import named_files

__all__ = ["unreviewed_code"]


def unreviewed_code(root: Path, command: Sequence[str]) -> str | None:
    """Return code that no one has agreed to, and that a command which runs in `root` would or might load.

    That is a file that it names, and Python files beside one or below: Python looks there first for what is imported.
    A command that names none may run a module of `root` if it runs Python.
    """
    new = [path for path in unreviewed_files(root) if os.path.lexists(root / path)]
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


def _is_python(word: str) -> bool:
    return word.replace(os.sep, "/").rpartition("/")[2].startswith("python")

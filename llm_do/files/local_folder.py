"""The folder for a project's local files, `.llm-do`; the modules that write to it define its content."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

__all__ = ["FOLDER", "NOT_LINKED", "is_linked", "make_folder"]

FOLDER = ".llm-do"
"""The name of the folder, below the project's root."""

NOT_LINKED = "Replace the link with a folder; you can copy its target into it."
"""The hint for a folder that is a link."""


def is_linked(root: Path) -> bool:
    """Whether a project's folder is a link, which is never read or written through: it may lead anywhere."""
    return os.path.islink(root / FOLDER)


def make_folder(root: Path) -> Path:
    """Return a project's folder; create it if it doesn't exist, with a `.gitignore` file that excludes its content."""
    folder = root / FOLDER
    if is_linked(root):
        raise OSError(errno.ELOOP, "it is a link, but a project's local files must stay below its root")
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("# llm-do's local files; they belong to this machine.\n*\n")
    return folder

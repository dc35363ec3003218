"""The folder of what a project keeps on this machine. What is in it is the business of those who put it there."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

__all__ = ["FOLDER", "NOT_LINKED", "is_linked", "make_folder"]

FOLDER = ".llm-do"
"""Its name, below the project's root."""

NOT_LINKED = "Put a folder in its place; what the link leads to can be copied into it."
"""What to do about a folder that is a link."""


def is_linked(root: Path) -> bool:
    """Whether a project's folder is a link. Nothing is read or written through one: it may lead anywhere."""
    return os.path.islink(root / FOLDER)


def make_folder(root: Path) -> Path:
    """The folder of a project, made with what keeps it out of version control where it isn't there."""
    folder = root / FOLDER
    if is_linked(root):
        raise OSError(errno.ELOOP, "it is a link, and what a project keeps stays below its root")
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("# What llm-do keeps here is of this machine.\n*\n")
    return folder

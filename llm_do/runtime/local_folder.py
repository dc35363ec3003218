"""The folder of what a project keeps on this machine. What is in it is the business of those who put it there."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["FOLDER", "make_folder"]

FOLDER = ".llm-do"
"""Its name, below the project's root."""


def make_folder(root: Path) -> Path:
    """The folder of a project, made with what keeps it out of version control where it isn't there.

    Args:
        root: The project's root.

    Raises:
        OSError: It can't be made.
    """
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("# What llm-do keeps here is of this machine.\n*\n")
    return folder

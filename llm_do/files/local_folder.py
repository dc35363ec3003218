"""The folder for a project's local files, `.llm-do`; the modules that write to it define its content.

No tool may read what is in it, other people's conversations for one, except an artifact whose path it received.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError

__all__ = ["ARTIFACTS", "FOLDER", "NOT_LINKED", "PRIVATE", "is_linked", "is_private", "make_folder", "private_guard"]

FOLDER = ".llm-do"
"""The name of the folder, below the project's root."""

PRIVATE = "llm-do's own records are kept there, and no tool reads them"
"""Why a path in it is refused."""

ARTIFACTS = "artifacts"
"""The folder in it for complete results that were too long for a model."""

NOT_LINKED = "Replace the link with a folder; you can copy its target into it."
"""The hint for a folder that is a link."""


def is_linked(root: Path) -> bool:
    """Whether a project's folder is a link, which is never read or written through: it may lead anywhere."""
    return os.path.islink(root / FOLDER)


def is_private(path: str) -> bool:
    """Whether a POSIX path leads to what no tool may read: anything in a project's folder but a single artifact.

    Example:
        >>> [is_private(path) for path in (".llm-do/state.db", "a/.LLM-DO", ".llm-do/artifacts/a.txt", "notes.txt")]
        [True, True, False, False]
    """
    names = [fold_name(name) for name in path.split("/")]
    if FOLDER not in names:
        return False
    below = names[names.index(FOLDER) + 1 :]
    return len(below) < 2 or below[0] != ARTIFACTS or FOLDER in below


def private_guard(trail: tuple[str, ...]) -> None:
    """Refuse a path that leads to what no tool may read; a guard for `Root`."""
    if any(map(is_private, trail)):
        raise FileRefusedError(trail[0], PRIVATE, reason="protected", hint="Continue without it; do not retry.")


def make_folder(root: Path) -> Path:
    """Return a project's folder; create it if it doesn't exist, with a `.gitignore` file that excludes its content."""
    folder = root / FOLDER
    if is_linked(root):
        raise OSError(errno.ELOOP, "it is a link, but a project's local files must stay below its root")
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("# llm-do's local files; they belong to this machine.\n*\n")
    return folder

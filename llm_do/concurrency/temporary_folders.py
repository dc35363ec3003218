"""Temporary folders, which are removed however this process ends.

Whoever makes one removes it; should this process be killed before, the lifeline does. No other module of the package
makes temporary folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from llm_do.concurrency.lifeline import keep_if_killed, remove_if_killed

__all__ = ["PREFIX", "make_temporary_folder", "remove_temporary_folder", "temporary_folder"]

PREFIX = "llm-do-"
"""What the names of temporary folders begin with."""


def make_temporary_folder(kind: str = "", parent: Path | None = None) -> Path:
    """Make an empty folder that only this user may open.

    Args:
        kind: A word for its name.
        parent: Where to make it; by default in the system's folder for temporary files.

    Returns:
        Its absolute path. The caller passes it to `remove_temporary_folder`.

    Raises:
        OSError: It can't be made.
    """
    above = os.path.abspath(parent if parent is not None else tempfile.gettempdir())  # noqa: PTH100
    while True:
        # The lifeline knows the name before there is a folder: there is no moment at which a kill leaves one.
        folder = Path(above, f"{PREFIX}{kind}{'-' * bool(kind)}{os.urandom(6).hex()}")
        remove_if_killed(folder)
        try:
            folder.mkdir(0o700)
        except FileExistsError:
            keep_if_killed(folder)
            continue
        except OSError:
            keep_if_killed(folder)
            raise
        return folder


def remove_temporary_folder(folder: Path) -> None:
    """Remove a folder that `make_temporary_folder` has made; what can't be removed is left."""
    shutil.rmtree(folder, ignore_errors=True)
    keep_if_killed(folder)


@contextmanager
def temporary_folder(kind: str = "", parent: Path | None = None) -> Generator[Path]:
    """Make a folder as `make_temporary_folder` does, and remove it after the block.

    Example:
        >>> with temporary_folder("notes") as folder:
        ...     folder.name.startswith("llm-do-notes-"), folder.is_dir()
        (True, True)
        >>> folder.exists()
        False
    """
    folder = make_temporary_folder(kind, parent)
    try:
        yield folder
    finally:
        remove_temporary_folder(folder)

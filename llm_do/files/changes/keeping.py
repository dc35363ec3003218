"""The seam between a change of a file and whoever keeps what it replaces: `KEEPER`, set for the time of a run.

Every change below a `Root` passes through `kept`, so no tool can leave it out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from typing import Protocol

from llm_do._startup.frozen import frozen
from llm_do.files.changes.file_states import FileState
from llm_do.files.folders import Folder
from llm_do.files.local_folder import FOLDER
from llm_do.files.paths import fold_name

__all__ = ["KEEPER", "Change", "Keeper", "Place", "is_own", "kept", "kept_by"]


@frozen
class Place:
    """Where something is changed.

    Args:
        folder: The open folder.
        name: The name in it.
        path: The absolute real path.
        root: The absolute real path of the root that the change is made below.
    """

    folder: Folder
    name: str
    path: str
    root: str


@frozen
class Change:
    """A change that is about to be made.

    Args:
        place: Where.
        after: What will be there.
    """

    place: Place
    after: FileState


class Keeper(Protocol):
    """Keeps what changes replace."""

    def changing(self, *changes: Change) -> contextlib.AbstractContextManager[None]:
        """Keep what is there before the block, in which the changes are made."""
        ...


KEEPER: ContextVar[Keeper | None] = ContextVar("llm_do_keeper", default=None)
"""What keeps the changes that are made in this task or worker thread."""


def is_own(path: str) -> bool:
    """Whether an absolute path leads to what llm-do keeps for itself, and so is not for a person to undo.

    Example:
        >>> is_own("/srv/.llm-do/artifacts/a.txt"), is_own("/srv/a.txt")
        (True, False)
    """
    return FOLDER in map(fold_name, path.replace("\\", "/").split("/"))


@contextlib.contextmanager
def kept_by(keeper: Keeper | None) -> Generator[None]:
    """Let a keeper keep all changes during the block."""
    token = KEEPER.set(keeper)
    try:
        yield
    finally:
        KEEPER.reset(token)


@contextlib.contextmanager
def kept(*changes: Change) -> Generator[None]:
    """Make changes in the block, after what is there has been kept."""
    keeper = KEEPER.get()
    if keeper is None:
        yield
        return
    with keeper.changing(*changes):
        yield

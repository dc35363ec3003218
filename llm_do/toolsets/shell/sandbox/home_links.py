"""What a command behind a wall finds in its own home folder: settings, and secrets that the project names.

They are links into the person's home folder, so they can be read there and not written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from llm_do._home_folder import find_home_folder

__all__ = ["link_home", "named_in_home"]

_SETTINGS = (".gitconfig", ".config/git")
"""Who commits, for one."""


def named_in_home(readable: Sequence[str]) -> list[Path]:
    """Return the paths of the home folder among what a project's commands may read."""
    home = find_home_folder()
    return [home / path[2:] for path in readable if path.startswith("~/")] if home is not None else []


def link_home(scratch: Path, named: Sequence[Path]) -> None:
    """Link from a home folder for commands to settings, and to the named paths of the person's own."""
    home = find_home_folder()
    if home is None:
        return
    for path in (*(home / name for name in _SETTINGS), *named):
        if path.is_relative_to(home) and path.exists():
            link = scratch / path.relative_to(home)
            with contextlib.suppress(OSError):  # it is there, or a command has put something else there
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)

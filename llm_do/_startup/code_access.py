"""Whether this process may import the Python files of a project, and start its servers.

A program that embeds llm-do may: whoever calls `Project.load` trusts the folder. The command line begins with every
folder closed; `llm_do.cli.actions.admission` opens one when a person, an option or the kind of command allows it. The
linker reads a closed folder as text, and whatever would run something in one raises.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

__all__ = ["Access", "closed_folders", "command_access", "is_open", "must_be_open", "open_copy", "open_folder"]

Access = Literal["runs", "looks", "reads"]
"""What a command does with a project: it runs it, looks at what it is made of, or never needs its code."""

_access: Access | None = None
_open: set[str] = set()


@contextmanager
def closed_folders(access: Access) -> Generator[None]:
    """Close every folder while one command of this kind is carried out."""
    global _access, _open
    before = _access, _open
    _access, _open = access, set()
    try:
        yield
    finally:
        _access, _open = before


def command_access() -> Access | None:
    """The kind of the command that is being carried out; None in a program that embeds llm-do."""
    return _access


def open_folder(root: Path) -> None:
    """Let this process run what is in a project's folder."""
    if _access == "reads":
        raise RuntimeError("a command that never needs a project's code can't open its folder")
    _open.add(os.path.realpath(root))


def open_copy(source: Path, copy: Path) -> None:
    """Open a copy of a folder if the folder itself is open."""
    if _access is not None and is_open(source):
        _open.add(os.path.realpath(copy))


def is_open(root: Path) -> bool:
    """Whether what is in a project's folder may be run."""
    return _access is None or os.path.realpath(root) in _open


def must_be_open(root: Path) -> None:
    """Raise unless what is in a project's folder may be run: a command forgot to ask."""
    if not is_open(root):
        raise RuntimeError(f"nothing in {root} may run: the command didn't ask for it")

"""The files of a skill besides its `SKILL.md`: which of them an import copies."""

from __future__ import annotations

import os
from pathlib import Path

from llm_do.cli.actions.importing.found_files import SKILL
from llm_do.policy.secrets import secret_file

__all__ = ["skill_files"]

MOST = 500
"""Files of a skill: an agent can read no more."""

LARGEST = 10 * 1024 * 1024
"""Bytes of the largest file of a skill."""

_NOT_COPIED = ("__pycache__", "node_modules")


def skill_files(folder: Path) -> tuple[list[str], list[str]]:
    """Find the files of a skill.

    Returns:
        Their paths relative to its folder, and a sentence about each that is left out; hidden files are, too.
    """
    files: list[str] = []
    notes: list[str] = []
    for where, folders, names in os.walk(folder):
        kept = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_COPIED)
        linked = [name for name in kept if Path(where, name).is_symlink()]
        folders[:] = [name for name in kept if name not in linked]
        inside = Path(where).relative_to(folder)
        notes += [f"`{(inside / name).as_posix()}` is left out: it is a link to a folder" for name in linked]
        for name in sorted(names):
            path = (inside / name).as_posix()
            if name.startswith(".") or path == SKILL:
                continue
            if why := _fault(folder, path):
                notes.append(f"`{path}` is left out: {why}")
            elif len(files) == MOST:
                notes.append(f"it has more than {MOST} files: `{path}` and what follows is left out")
                return files, notes
            else:
                files.append(path)
    return files, notes


def _fault(folder: Path, path: str) -> str | None:
    """Why a file isn't copied."""
    file = folder / path
    if not file.resolve().is_relative_to(folder.resolve()):
        return "it is a link out of the skill's folder"
    if not file.is_file():
        return "it is no file"
    if secret_file(path) is not None:
        return "it may be a secret"
    return f"it is larger than {LARGEST // 1024**2} MiB" if file.stat().st_size > LARGEST else None

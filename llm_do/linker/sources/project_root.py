"""Where a project is: from what a person names, or from the folder they are in, to a root and a manifest.

Nothing is read here; the linker checks the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from llm_do._home_folder import home_folder
from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError

__all__ = ["MANIFEST", "ProjectLocation", "find_project", "locate_project", "way_to_project"]

MANIFEST = "project.json"
"""Name of the manifest in a project's folder."""

_HINT = "Name a folder with a project.json or .agent files, a manifest, or one .agent file."

_SUBAGENTS = ".claude/agents"
_SKILLS = (".", "skills/*", ".claude/skills/*", "*")
"""Where people keep skills, as an agent file lists them."""


@frozen
class ProjectLocation:
    """A place where a project is.

    Args:
        root: The project's folder, absolute and with its links resolved.
        manifest: The manifest; None for a bare folder or a single file.
        agent_file: The `.agent` file, when one was named as the project.
        stand_ins: Files that are read instead of those of single agents, by the agent's name.
        env_folder: The folder whose `.env` counts; None for the root.
        env_file: A file with variables that counts before it.
        tested: The names that the project's tests run, which are used therefore.
    """

    root: Path
    manifest: Path | None = None
    agent_file: Path | None = None
    stand_ins: Mapping[str, Path] = field(default_factory=dict[str, Path])
    env_folder: Path | None = None
    env_file: str | None = None
    tested: frozenset[str] = frozenset()


def locate_project(path: Path) -> ProjectLocation:
    """Find the project that a path names."""
    try:
        if path.is_dir():
            return _in_folder(path)
        if path.is_file():
            return _of_file(path)
        if os.path.lexists(path):
            raise UsageError(f"{path} is neither a folder nor an ordinary file", hint=_HINT)
    except (OSError, ValueError) as error:
        raise UsageError(f"no project at {str(path)!r}: {_reason(error)}", hint=_HINT) from error
    raise UsageError(f"no project at {path}: there is no such file or folder", hint=_HINT)


def find_project(start: Path) -> ProjectLocation:
    """Find the project that a folder belongs to: the nearest `project.json` upwards, else the folder itself.

    The search ends at the root of a git repository, below the home folder, and where a folder or manifest belongs to
    another user or others may write the folder: their project must not run because of where someone works.
    """
    folder = start.resolve()
    for candidate in _searched(folder):
        manifest = candidate / MANIFEST
        if os.path.isfile(manifest) and (candidate == folder or _owner(manifest) == _owner(folder)):
            return ProjectLocation(candidate, manifest)
    try:
        return locate_project(folder)
    except UsageError as error:
        raise UsageError(
            f"no project here: {folder} has neither {MANIFEST} nor an .agent file, "
            f"and no folder above it has a {MANIFEST}",
            hint=f"{way_to_project(folder)}. {_HINT}",
        ) from error


def way_to_project(folder: Path) -> str:
    """What makes a project of a folder that has none, by what is in it.

    Args:
        folder: The folder.

    Returns:
        A sentence without its full stop.

    Example:
        >>> way_to_project(Path("nowhere"))
        '`llm-do init` creates a project'
    """
    if _has(folder, f"{_SUBAGENTS}/*.md"):
        return f"`llm-do import {_SUBAGENTS}` makes a project of the subagents here"
    for skills in _SKILLS:
        if _has(folder, f"{skills}/SKILL.md"):
            return f"`skills: [{skills}]` in an agent file, such as main.agent, makes a project of the skills here"
    return "`llm-do init` creates a project"


def _has(folder: Path, pattern: str) -> bool:
    try:
        return any(folder.glob(pattern))
    except OSError:
        return False


def _searched(folder: Path) -> Iterator[Path]:
    """Yield the folders that may hold the project of a folder, the nearest first."""
    yield folder
    owner, home = _owner(folder), _home()
    for above, below in zip(folder.parents, (folder, *folder.parents), strict=False):
        if os.path.lexists(below / ".git") or above == home or below == home:
            return
        if _owner(above) != owner or _others_write(above):
            return
        yield above


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def _others_write(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & 0o002)
    except OSError:
        return True


def _home() -> Path | None:
    try:
        return home_folder().resolve()
    except (RuntimeError, OSError):
        return None


def _in_folder(folder: Path) -> ProjectLocation:
    root = folder.resolve()
    manifest = root / MANIFEST
    if manifest.is_file():
        return ProjectLocation(root, manifest)
    if os.path.lexists(manifest):
        raise UsageError(f"{folder / MANIFEST} is not a file", hint=_HINT)
    if not any(path.name.endswith(".agent") for path in root.iterdir()):
        raise UsageError(f"no project in {folder}: it has neither {MANIFEST} nor an .agent file", hint=_HINT)
    return ProjectLocation(root)


def _of_file(path: Path) -> ProjectLocation:
    resolved = path.resolve()
    if path.suffix == ".agent":
        named = path.parent.resolve() / path.name
        return ProjectLocation(named.parent, agent_file=named)
    if path.suffix == ".json":
        return ProjectLocation(resolved.parent, resolved)
    raise UsageError(f"{path} is neither a manifest (.json) nor an .agent file", hint=_HINT)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

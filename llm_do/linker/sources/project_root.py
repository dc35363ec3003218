"""Where a project is: from what a person names, or from the folder they are in, to a root and a manifest.

Nothing is read here; the linker checks the files.
"""

from __future__ import annotations

import os
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError

__all__ = ["MANIFEST", "ProjectLocation", "find_project", "locate_project"]

MANIFEST = "project.json"
"""Name of the manifest in a project's folder."""

_HINT = "Name a folder with a project.json or .agent files, a manifest, or one .agent file."


@frozen
class ProjectLocation:
    """A place where a project is.

    Args:
        root: The project's folder, absolute and with its links resolved.
        manifest: The manifest; None for a bare folder or a single file.
        agent_file: The `.agent` file, when one was named as the project.
    """

    root: Path
    manifest: Path | None = None
    agent_file: Path | None = None


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
    """Find the project that a folder belongs to: the nearest `project.json` upwards, else the folder itself."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if os.path.isfile(candidate / MANIFEST):
            return ProjectLocation(candidate, candidate / MANIFEST)
    try:
        return locate_project(folder)
    except UsageError as error:
        raise UsageError(
            f"no project here: {folder} has neither {MANIFEST} nor an .agent file, "
            f"and no folder above it has a {MANIFEST}",
            hint=_HINT,
        ) from error


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

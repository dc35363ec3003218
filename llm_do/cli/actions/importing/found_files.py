"""Which files an import reads: the subagents and skills in the files and folders that it is given."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from llm_do.errors import UsageError

__all__ = ["SKILL", "FoundFiles", "find_files"]

SKILL = "SKILL.md"

_MOST = 5_000
"""Files that are read at once: more than any collection has."""

_SKIPPED = ("node_modules", "site-packages")
_WITHOUT_AGENTS = ("skills", "commands")
_OTHER_FILES = ("readme", "skill", "claude", "agents", "contributing", "changelog", "license", "security", "index")


@dataclass
class FoundFiles:
    """What there is to import.

    Args:
        agents: Markdown files that may be subagents.
        skills: The `SKILL.md` files of skills.
        links: Folders of skills that links lead out to.
    """

    agents: list[Path] = field(default_factory=list[Path])
    skills: list[Path] = field(default_factory=list[Path])
    links: list[Path] = field(default_factory=list[Path])


def find_files(paths: Iterable[Path]) -> FoundFiles:
    """Find what there is to import, each file once.

    Raises:
        UsageError: A path doesn't exist, or a folder has too many files.
    """
    found = FoundFiles()
    for path in paths:
        if os.path.isdir(path):
            _find(path, found)
        elif not os.path.lexists(path):
            raise UsageError(f"there is no {path}", hint="Name a Markdown file, or a folder such as .claude.")
        else:
            (found.skills if path.name == SKILL else found.agents).append(path)
    return FoundFiles(_each_once(found.agents), _each_once(found.skills), _each_once(found.links))


def _find(path: Path, found: FoundFiles) -> None:
    """Add what a folder has: of a repository only what is in its `.claude`, if there is something."""
    home = path if path.name == ".claude" else path / ".claude"
    agents, skills = home / "agents", home / "skills"
    if not (os.path.isdir(agents) or os.path.isdir(skills)):
        _walk(path, path, found)
        return
    inside = FoundFiles()
    _walk(agents, path, inside)
    found.agents += inside.agents
    _walk(skills, path, found)


def _walk(base: Path, named: Path, found: FoundFiles) -> None:
    count = 0
    for where, folders, files in os.walk(base):
        here = Path(where)
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for folder in [here / name for name in folders if (here / name).is_symlink()]:
            if os.path.lexists(folder / SKILL):
                (found.skills if _is_below(folder, base) else found.links).append(
                    folder / SKILL if _is_below(folder, base) else folder
                )
        if SKILL in files:
            folders[:] = []
            files = [SKILL]
        elif any(part in _WITHOUT_AGENTS for part in (base.name, *here.relative_to(base).parts)):
            files = []
        for name in sorted(files):
            file = here / name
            is_agent = file.suffix.lower() in (".md", ".markdown") and file.stem.lower() not in _OTHER_FILES
            if not (is_agent or name == SKILL):
                continue
            if file.is_symlink() and not _is_below(file, base):
                continue  # a collection from elsewhere must not reach other files of this machine
            count += 1
            if count > _MOST:
                raise UsageError(f"{named} has more than {_MOST:,} Markdown files", hint="Name a folder of agents.")
            (found.skills if name == SKILL else found.agents).append(file)


def _is_below(path: Path, base: Path) -> bool:
    return path.resolve().is_relative_to(base.resolve())


def _each_once(paths: Iterable[Path]) -> list[Path]:
    return list({os.path.realpath(path): path for path in paths}.values())

"""The folders of skills that the manifest and agents list: found, read and checked.

Only what is found here is ever shown to a model: its files are listed once, so nothing that appears later is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from llm_do.diagnostics.codes import files as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.formats.skill_file import SkillFile, links_of, parse_skill
from llm_do.formats.syntax.source import read_text
from llm_do.formats.validation.validator import Parsed
from llm_do.linker.sources.conversion import AgentSource
from llm_do.linker.sources.file_lists import is_inside, list_folders
from llm_do.linker.sources.new_code import NewCode, read_new_code
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.policy.secrets import secret_file
from llm_do.project.agent_spec import SKILLS, AgentSpec, ToolsetRef, give_skills
from llm_do.project.skill import Skill

__all__ = ["LinkedSkills", "find_skills", "link_skills"]

FILE = "SKILL.md"
MOST_FILES = 500
"""The most files of one skill that an agent can read."""

LARGEST = 10 * 1024 * 1024
"""Bytes of the largest file that counts as one for reading; scripts may use larger ones."""

_NOT_READ = ("__pycache__", "node_modules")


class _SkillFolders:
    """Reads skills, each folder once."""

    def __init__(self, root: Path, new_code: NewCode) -> None:
        self.root = root
        self.new_code = new_code
        self._read: dict[Path, tuple[Skill | None, Sequence[Diagnostic]]] = {}

    def find(self, patterns: Sequence[tuple[str, Location]]) -> tuple[list[Skill], list[Diagnostic]]:
        """Find the skills of one list, sorted by name."""
        skills: dict[str, Skill] = {}
        found: list[Diagnostic] = []
        folders: dict[Path, bool] = {}
        places: dict[Path, Location] = {}
        for pattern, place in patterns:
            pattern = _relative(self.root, pattern)
            matches, faults = list_folders(self.root, pattern, place)
            found += faults
            for folder in matches:
                # `**` goes through folders that are no skills, and those in skills.
                is_listed = "**" not in pattern.split("/")
                folders[folder] = folders.get(folder, False) or is_listed
                if is_listed:
                    places.setdefault(folder, place)
        for folder, is_listed in folders.items():
            if not os.path.lexists(folder / FILE):
                if is_listed and not self.new_code.leaves_out(folder) and not self.new_code.leaves_out(folder / FILE):
                    found.append(_without_file(self.root, folder).at(places[folder]))
                continue
            skill, faults = self._skill(folder)
            found += faults
            if skill is None:
                continue
            other = skills.setdefault(skill.name, skill)
            if other is not skill:
                found.append(problems.duplicate_skill(skill.name, other.folder).at(skill.place or Location("")))
        return [skills[name] for name in sorted(skills)], found

    def _skill(self, folder: Path) -> tuple[Skill | None, Sequence[Diagnostic]]:
        if folder not in self._read:
            self._read[folder] = self._read_skill(folder)
        return self._read[folder]

    def _read_skill(self, folder: Path) -> tuple[Skill | None, Sequence[Diagnostic]]:
        path = folder / FILE
        label, name = file_label(self.root, path), file_label(self.root, folder)
        if self.new_code.leaves_out(folder) or self.new_code.leaves_out(path):
            return None, ()
        if not is_inside(folder, FILE):
            return None, [problems.unreadable_file("it is a link out of the skill's folder").at(Location(label))]
        read = read_text(path, label)
        if read.text is None:
            return None, read.diagnostics
        parsed = parse_skill(read.text, label)
        files = tuple(sorted(self._files(folder)))
        found = [*parsed.diagnostics, *_check_links(parsed, folder, files)]
        declared = parsed.value
        if declared is None or parsed.node is None:
            return None, found
        place = parsed.node.place_of(("name",))
        if declared.name != folder.name:
            found.append(problems.unlike_folder(declared.name, folder.name).at(place))
        return _skill_of(declared, parsed.body, folder, name, files, place), found

    def _files(self, folder: Path) -> Iterator[str]:
        """The files of a skill that an agent can read: no hidden ones, no secrets, nothing that a link leads out to."""
        count = 0
        for at, folders, names in os.walk(folder):
            folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _NOT_READ)
            inside = os.path.relpath(at, folder).replace(os.sep, "/")
            for name in sorted(names):
                path = name if inside == "." else f"{inside}/{name}"
                if name.startswith(".") or secret_file(path) is not None or not is_inside(folder, path):
                    continue
                if not _is_readable(folder / path) or self.new_code.leaves_out(folder / path):
                    continue
                yield path
                count += 1
                if count == MOST_FILES:
                    return


def _without_file(root: Path, folder: Path) -> Problem:
    names = _names(folder)
    inner = any((folder / each / FILE).is_file() for each in names)
    return problems.no_skill_file(file_label(root, folder), names, has_skills=inner)


def _skill_of(
    declared: SkillFile, body: str, folder: Path, label: str, files: tuple[str, ...], place: Location
) -> Skill:
    return Skill(
        name=declared.name,
        description=declared.description,
        body=body,
        folder=label,
        path=folder,
        files=files,
        license=declared.license,
        compatibility=declared.compatibility,
        metadata=declared.metadata,
        allowed_tools=declared.allowed_tools,
        place=place,
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _is_readable(path: Path) -> bool:
    try:
        return os.path.isfile(path) and path.stat().st_size <= LARGEST
    except OSError:
        return False


def _check_links(parsed: Parsed[SkillFile], folder: Path, files: Sequence[str]) -> Iterator[Diagnostic]:
    known = {*files, *(str(parent) for file in files for parent in PurePosixPath(file).parents)}
    for target, place in links_of(parsed):
        path = os.path.normpath(target).replace(os.sep, "/")
        if path == ".." or path.startswith("../"):
            yield problems.link_outside(target).at(place)
        elif path not in known and not ("\0" not in path and is_inside(folder, path) and (folder / path).exists()):
            yield problems.dead_link(target).at(place)


def _relative(root: Path, pattern: str) -> str:
    """A pattern relative to the root, if it is an absolute one below it, as Python code may make it."""
    path = Path(pattern)
    return path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else pattern


def find_skills(root: Path, patterns: Sequence[str]) -> tuple[list[Skill], list[Diagnostic]]:
    """Find the skills that paths and globs below a project's folder name.

    Args:
        root: The project's folder.
        patterns: Paths and globs of folders.

    Returns:
        The skills, and what is wrong with them.

    Example:
        >>> find_skills(Path("."), ["skills/*"])[1][0].message
        '`skills/*` matches no folder'
    """
    real = Path(os.path.realpath(root))
    listed = [(_relative(root.absolute(), pattern), Location("")) for pattern in patterns]
    return _SkillFolders(real, read_new_code(real)).find(listed)


class LinkedSkills:
    """The skills of a project.

    Args:
        default: Those of agents that list none themselves.
        patterns: All paths and globs of their folders.
        files: Every file of theirs, absolute.
    """

    def __init__(self, default: Sequence[Skill] = (), patterns: Sequence[str] = (), files: Sequence[Path] = ()) -> None:
        self.default = tuple(default)
        self.patterns = tuple(patterns)
        self.files = tuple(files)


def link_skills(
    files: ProjectFiles,
    agents: Sequence[tuple[AgentSpec, Location | None]],
    sources: Sequence[AgentSource],
    found: list[Diagnostic],
) -> LinkedSkills:
    """Give each agent of a project its skills.

    Args:
        files: The project's files.
        agents: Its agents, each with its place.
        sources: The files of those that have one.
        found: Gets what is wrong.
    """
    listed = files.manifest.skills if files.manifest is not None else []
    used = bool(listed) or any(spec.skills or _names_toolset(spec) for spec, _ in agents)
    if not used:
        return LinkedSkills()
    folders = _SkillFolders(files.root, files.new_code)
    default, faults = folders.find([(each, files.place("skills", index)) for index, each in enumerate(listed)])
    found += faults
    patterns = list(listed)
    skills = {skill.folder: skill for skill in default}
    by_place = {source.place(("name",)): source for source in sources}
    for spec, at in agents:
        source = by_place.get(spec.place) if spec.place is not None else None
        own: Sequence[Skill] = default
        if spec.skills is not None:
            wanted = [str(item) for item in spec.skills if not isinstance(item, Skill)]
            places = [_place(source, index, spec.place or at) for index in range(len(wanted))]
            own, faults = folders.find(list(zip(wanted, places, strict=True)))
            own = [*own, *(item for item in spec.skills if isinstance(item, Skill))]
            found += faults
            patterns += [_relative(files.root, each) for each in wanted]
        if not own and not spec.skills and _names_toolset(spec):
            found.append(problems.no_skills(spec.name).at(spec.place or at or Location("")))
        give_skills(spec, own)
        skills |= {skill.folder: skill for skill in own}
    patterns += (os.path.relpath(os.path.realpath(skill.path), files.root) for skill in skills.values())
    paths = [skill.path / file for skill in skills.values() for file in skill.files]
    return LinkedSkills(default, list(dict.fromkeys(patterns)), list(dict.fromkeys(paths)))


def _names_toolset(spec: AgentSpec) -> bool:
    return any((item.name if isinstance(item, ToolsetRef) else item) == SKILLS for item in spec.toolsets)


def _place(source: AgentSource | None, index: int, other: Location | None) -> Location:
    return source.place(("skills", index)) if source is not None else other or Location("")

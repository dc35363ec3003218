"""What `llm-do import` does: it finds and reads files, plans, writes what isn't there, and reports the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from llm_do._bounded_files import read_bounded
from llm_do._machine_limits import hint_for
from llm_do.cli.actions.importing.found_files import SKILL, find_files
from llm_do.cli.actions.importing.skill_files import skill_files
from llm_do.cli.actions.new_files import create_file
from llm_do.cli.arguments.target import user_path
from llm_do.errors import UsageError
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.syntax.source import read_text
from llm_do.importing.folder_plan import FOLDER, ImportPlan, SourceFile, SourceNote, Target, plan_import
from llm_do.importing.skill_plan import SKILLS
from llm_do.importing.translation import Note
from llm_do.linker.sources.project_files import ProjectFiles, read_project
from llm_do.linker.sources.project_root import MANIFEST, ProjectLocation
from llm_do.text.sanitizer import sanitize, shell_word
from llm_do.text.words import with_count

__all__ = ["Imported", "import_agents"]

_SHOWN = 3


@dataclass
class Imported:
    """What came of an import.

    Args:
        root: The project's folder.
        plan: What was to be written.
        written: The files that were written, relative to the folder.
        unchanged: Those that were there already, with the same text.
        refused: Why files weren't imported or written, as the end of a sentence about each.
        notes: What couldn't be converted, the files of skills included.
        unlisted: Whether the manifest doesn't list the agents.
        unlisted_skills: Whether it doesn't list the skills.
    """

    root: Path
    plan: ImportPlan
    written: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[SourceNote] = field(default_factory=list[SourceNote])
    unlisted: bool = False
    unlisted_skills: bool = False

    def as_data(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "folder": str(self.root),
            "written": self.written,
            "unchanged": self.unchanged,
            "refused": [{"file": file, "reason": reason} for file, reason in self.refused.items()],
            "notes": [{"file": each.file, "line": each.note.line, "text": each.note.text} for each in self.notes],
            "others": list(self.plan.others),
        }

    def lines(self) -> Iterator[str]:
        """What there is to know besides what was written, for a person."""
        for file, reason in self.refused.items():
            yield sanitize(f"not imported: {file} {reason}")
        if self.notes:
            yield "not converted, or converted to something else:"
            yield from _note_lines(self.notes)
        if self.plan.others:
            yield sanitize(f"no agents: {_some(list(self.plan.others))}")
        if self.unchanged:
            yield sanitize(f"there already, with the same text: {_some(self.unchanged)}")
        yield from self._next_steps()

    def _next_steps(self) -> Iterator[str]:
        if not self.written:
            return
        agents = [file for file in self.written if file.startswith(f"{FOLDER}/")]
        skills = [file for file in self.written if file.startswith(f"{SKILLS}/") and file.endswith(f"/{SKILL}")]
        if MANIFEST in self.written:
            folder = "" if self.root == Path.cwd() else f" {shell_word(str(self.root))}"
            counts = [with_count(len(files), what) for files, what in ((agents, "agent"), (skills, "skill")) if files]
            yield f"{' and '.join(counts)}; check and run the project with:"
            yield sanitize(f"  llm-do check{folder}")
            yield sanitize(f'  llm-do run{folder} "PROMPT"')
            return
        if self.unlisted:
            yield sanitize(f'add them to {self.root / MANIFEST}: "agent_files": ["{FOLDER}/*.agent", ...]')
        if self.unlisted_skills:
            yield sanitize(f'add them to {self.root / MANIFEST}: "skills": ["{SKILLS}/*", ...]')
        if agents:
            yield sanitize(f"let an agent call them: toolsets: [{', '.join(Path(file).stem for file in agents)}]")


def import_agents(paths: Sequence[str], folder: Path) -> Imported:
    """Import subagents and skills into a project.

    Args:
        paths: Files, or folders with files.
        folder: The project's folder, created if it doesn't exist.

    Raises:
        UsageError: There is nothing to import, or the project's manifest can't be read.
    """
    root = folder.resolve()
    refused: dict[str, str] = {}
    given = [user_path(path) for path in paths]
    named = {_shown(path) for path in given if not os.path.isdir(path)}
    found = find_files(given)
    agents, skills = _sources(found.agents, refused), _sources(found.skills, refused)
    refused |= {_shown(path): "is a link out of the folder: name what it leads to" for path in found.links}
    plan = plan_import(agents, _target(root), skills)
    refused |= {**plan.refused, **{file: why for file, why in plan.others.items() if file in named}}
    if not plan.files and not refused and not plan.notes:
        raise UsageError(
            f"no agents and no skills in {', '.join('the current folder' if path == '.' else path for path in paths)}",
            hint="Name Markdown files whose frontmatter has a name or a description, folders with a SKILL.md, or a "
            "folder such as .claude.",
        )
    imported = Imported(root, plan, refused=refused, notes=list(plan.notes))
    for file, text in plan.files.items():
        _write(imported, file, text.encode())
    _copy_skills(imported, {_shown(path): path for path in found.skills})
    if MANIFEST not in plan.files:
        imported.unlisted = not _lists(root, imported.written)
        imported.unlisted_skills = bool(plan.skills) and not _lists_skills(root, plan.skills.values())
    return imported


def _sources(paths: Sequence[Path], refused: dict[str, str]) -> list[SourceFile]:
    sources: list[SourceFile] = []
    for path in paths:
        result = read_text(path)
        if result.text is None:
            refused[_shown(path)] = f"can't be read: {result.diagnostics[0].message}"
        else:
            sources.append(SourceFile(_shown(path), result.text))
    return sources


def _shown(path: Path) -> str:
    """A path as a person would write it."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (OSError, ValueError):
        return path.as_posix()


def _target(root: Path) -> Target:
    title = root.name or "agents"
    skills = frozenset(path.parent.name for path in (root / SKILLS).glob(f"*/{SKILL}"))
    if not os.path.lexists(root / MANIFEST):
        return Target(title, taken=_agents_in(root), skills=skills)
    project = _project(root)
    if project.manifest is None:
        raise UsageError(
            f"{root / MANIFEST} can't be read",
            hint=f"`llm-do check {shell_word(str(root))}` says why; or name another folder with --to.",
        )
    manifest = project.manifest
    taken = dict.fromkeys((*manifest.toolsets, *manifest.flows), MANIFEST)
    taken |= {
        name: agent.label
        for agent in project.agents
        if (name := agent.value.name if agent.value is not None else agent.readable) is not None
    } | _agents_in(root)
    servers = frozenset(name for name, config in manifest.toolsets.items() if config.type == "mcp")
    # One that allows commands allows them for what its owner wrote, not for agents from elsewhere.
    shells = [
        name
        for name, config in manifest.toolsets.items()
        if config.type == "shell" and not config.read_only and not config.allow
    ]
    shell, models = shells[0] if shells else None, frozenset(manifest.models)
    return Target(title, exists=True, shell=shell, servers=servers, models=models, taken=taken, skills=skills)


def _project(root: Path) -> ProjectFiles:
    return read_project(ProjectLocation(root, root / MANIFEST))


def _agents_in(root: Path) -> dict[str, str]:
    """The names of agents in the folder that the import writes to."""
    found: dict[str, str] = {}
    for path in sorted((root / FOLDER).glob("*.agent")):
        text = read_text(path).text
        value = parse_agent(text, path.name).value if text is not None else None
        if value is not None:
            found[value.name] = f"{FOLDER}/{path.name}"
    return found


def _lists(root: Path, written: Sequence[str]) -> bool:
    """Whether the manifest lists what was written."""
    listed = {agent.path for agent in _project(root).agents}
    return all(root / file in listed for file in written if file.startswith(f"{FOLDER}/"))


def _lists_skills(root: Path, folders: Iterable[str]) -> bool:
    """Whether the manifest lists the folders of skills."""
    manifest = _project(root).manifest
    patterns = [str(each) for each in manifest.skills] if manifest is not None else []
    return all(any(PurePosixPath(folder).match(pattern) for pattern in patterns) for folder in folders)


def _copy_skills(imported: Imported, sources: Mapping[str, Path]) -> None:
    """Copy the files beside each `SKILL.md`, unless that couldn't be written."""
    for file, folder in imported.plan.skills.items():
        if f"{folder}/{SKILL}" in imported.refused:
            continue
        source = sources[file].parent
        names, notes = skill_files(source)
        imported.notes += [SourceNote(file, Note(text)) for text in notes]
        for name in names:
            try:
                data = read_bounded(source / name)
            except OSError as error:
                imported.refused[_shown(source / name)] = f"can't be read: {error.strerror or error}"
                continue
            _write(imported, f"{folder}/{name}", data, runs=os.access(source / name, os.X_OK))


def _write(imported: Imported, file: str, data: bytes, *, runs: bool = False) -> None:
    """Write a file if there is none; what exists is never touched."""
    path = imported.root / file
    if os.path.lexists(path):
        if path.is_file() and path.read_bytes() == data:
            imported.unchanged.append(file)
        else:
            imported.refused[file] = "exists already, with another text: remove it, or name another folder with --to"
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_file(path, data)
        if runs:
            path.chmod(path.stat().st_mode | 0o111 & ~_umask())
    except OSError as error:
        raise UsageError(
            f"{error.filename or path} can't be written: {error.strerror or error}",
            hint=hint_for(error, "Name a folder that you may write to: --to DIR."),
        ) from error
    imported.written.append(file)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _note_lines(notes: Sequence[SourceNote]) -> Iterator[str]:
    """A line for each sentence, with the files that it is about."""
    groups: dict[str, list[SourceNote]] = {}
    for each in notes:
        groups.setdefault(each.note.text, []).append(each)
    for text, group in groups.items():
        places = [f"{each.file}:{each.note.line}" for each in group]
        yield sanitize(f"  {places[0]}: {text}" if len(group) == 1 else f"  {text} ({_some(places)})")


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")

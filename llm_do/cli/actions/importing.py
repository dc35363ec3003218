"""What `llm-do import` does: it finds and reads files, plans, writes what isn't there, and reports the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_do.cli.arguments.target import user_path
from llm_do.errors import UsageError
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.syntax.source import read_text
from llm_do.importing.folder_plan import FOLDER, ImportPlan, SourceFile, SourceNote, Target, plan_import
from llm_do.linker.sources.project_files import ProjectFiles, read_project
from llm_do.linker.sources.project_root import MANIFEST, ProjectLocation
from llm_do.text.sanitizer import sanitize

__all__ = ["Imported", "import_agents"]

_MOST = 5_000
"""Files that are read at once: more than any collection has."""

_OTHER_FOLDERS = ("skills", "commands", "node_modules", "site-packages")
_OTHER_FILES = ("readme", "skill", "claude", "agents", "contributing", "changelog", "license", "security", "index")
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
        unlisted: Whether the manifest doesn't list the agents.
    """

    root: Path
    plan: ImportPlan
    written: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    unlisted: bool = False

    def as_data(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "folder": str(self.root),
            "written": self.written,
            "unchanged": self.unchanged,
            "refused": [{"file": file, "reason": reason} for file, reason in self.refused.items()],
            "notes": [{"file": each.file, "line": each.note.line, "text": each.note.text} for each in self.plan.notes],
            "others": list(self.plan.others),
        }

    def lines(self) -> Iterator[str]:
        """What there is to know besides what was written, for a person."""
        for file, reason in self.refused.items():
            yield sanitize(f"not imported: {file} {reason}")
        if self.plan.notes:
            yield "what an .agent file can't say, or says in another way:"
            yield from _note_lines(self.plan.notes)
        if self.plan.others:
            yield sanitize(f"no agents: {_some(list(self.plan.others))}")
        if self.unchanged:
            yield sanitize(f"there already, with the same text: {_some(self.unchanged)}")
        yield from self._next_steps()

    def _next_steps(self) -> Iterator[str]:
        import shlex

        if not self.written:
            return
        agents = [file for file in self.written if file.endswith(".agent")]
        if MANIFEST in self.written:
            folder = "" if self.root == Path.cwd() else f" {shlex.quote(str(self.root))}"
            yield f"{len(agents)} {'agents' if len(agents) > 1 else 'agent'}; check and run the project with:"
            yield sanitize(f"  llm-do check{folder}")
            yield sanitize(f'  llm-do run{folder} "PROMPT"')
            return
        if self.unlisted:
            yield sanitize(f'add them to {self.root / MANIFEST}: "agent_files": ["{FOLDER}/*.agent", ...]')
        yield sanitize(f"let an agent call them: toolsets: [{', '.join(Path(file).stem for file in agents)}]")


def import_agents(paths: Sequence[str], folder: Path) -> Imported:
    """Import subagents into a project.

    Args:
        paths: Files, or folders with files.
        folder: The project's folder, created if it doesn't exist.

    Raises:
        UsageError: There is nothing to import, or the project's manifest can't be read.
    """
    root = folder.resolve()
    sources: list[SourceFile] = []
    refused: dict[str, str] = {}
    given = [user_path(path) for path in paths]
    named = {_shown(path) for path in given if not os.path.isdir(path)}
    for path in _each_once(path for each in given for path in _find(each)):
        result = read_text(path)
        if result.text is None:
            refused[_shown(path)] = f"can't be read: {result.diagnostics[0].message}"
        else:
            sources.append(SourceFile(_shown(path), result.text))
    plan = plan_import(sources, _target(root))
    refused |= {**plan.refused, **{file: why for file, why in plan.others.items() if file in named}}
    if not plan.files and not refused:
        raise UsageError(
            f"no agents in {', '.join('the current folder' if path == '.' else path for path in paths)}",
            hint="Name Markdown files whose frontmatter has a name or a description, such as .claude/agents.",
        )
    imported = Imported(root, plan, refused=refused)
    _write(imported)
    imported.unlisted = MANIFEST not in plan.files and not _lists(root, imported.written)
    return imported


def _find(path: Path) -> Iterator[Path]:
    """The Markdown files that a path names."""
    if not os.path.isdir(path):
        if not os.path.lexists(path):
            raise UsageError(f"there is no {path}", hint="Name a Markdown file, or a folder such as .claude/agents.")
        yield path
        return
    inner = path / "agents" if path.name == ".claude" else path / ".claude" / "agents"
    base = inner if os.path.isdir(inner) else path
    count = 0
    for where, folders, files in os.walk(base):
        folders[:] = sorted(name for name in folders if name not in _OTHER_FOLDERS and not name.startswith("."))
        for name in sorted(files):
            file = Path(where, name)
            if file.suffix.lower() not in (".md", ".markdown") or file.stem.lower() in _OTHER_FILES:
                continue
            if file.is_symlink() and not file.resolve().is_relative_to(base.resolve()):
                continue  # a collection from elsewhere must not reach other files of this machine
            count += 1
            if count > _MOST:
                raise UsageError(f"{path} has more than {_MOST:,} Markdown files", hint="Name a folder of agents.")
            yield file


def _each_once(paths: Iterator[Path]) -> list[Path]:
    return list({os.path.realpath(path): path for path in paths}.values())


def _shown(path: Path) -> str:
    """A path as a person would write it."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (OSError, ValueError):
        return path.as_posix()


def _target(root: Path) -> Target:
    title = root.name or "agents"
    if not os.path.lexists(root / MANIFEST):
        return Target(title, taken=_agents_in(root))
    project = _project(root)
    if project.manifest is None:
        raise UsageError(
            f"{root / MANIFEST} can't be read",
            hint=f"`llm-do check {root}` says why; or name another folder with --to.",
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
    return Target(title, exists=True, shell=shell, servers=servers, models=models, taken=taken)


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
    return all(root / file in listed for file in written)


def _write(imported: Imported) -> None:
    """Write the files that don't exist; what exists is never touched."""
    for file, text in imported.plan.files.items():
        path = imported.root / file
        if os.path.lexists(path):
            if read_text(path).text == text:
                imported.unchanged.append(file)
            else:
                imported.refused[file] = (
                    "exists already, with another text: remove it, or name another folder with --to"
                )
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        except OSError as error:
            raise UsageError(
                f"{error.filename or path} can't be written: {error.strerror or error}",
                hint="Name a folder that you may write to: --to DIR.",
            ) from error
        imported.written.append(file)


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

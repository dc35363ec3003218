"""The files of one project, read and parsed: the manifest, or what is implied without one, and the agents.

`llm_do.linker.linker` resolves the names in them later.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm_do.diagnostics.codes.cases import other_agent
from llm_do.diagnostics.codes.environment import new_manifest
from llm_do.diagnostics.codes.python import not_python
from llm_do.diagnostics.codes.shape import LD129
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.formats.syntax.source import Node, key_place_in, place_in, read_text
from llm_do.linker.sources.conversion import AgentSource
from llm_do.linker.sources.file_lists import list_files
from llm_do.linker.sources.new_code import NewCode, read_new_code
from llm_do.linker.sources.project_root import MANIFEST, ProjectLocation

if TYPE_CHECKING:
    from llm_do.formats.manifest import ManifestFile

__all__ = ["ProjectFiles", "read_project"]

_IMPLIED_PYTHON = ("tools.py", "toolsets.py", "schemas.py")


@dataclass(slots=True)
class ProjectFiles:
    """The parsed files of a project.

    Args:
        located: Where the project is.
        readable: False when the manifest is unusable; then nothing else was read.
        manifest: What the manifest declares, None for an implied one.
        node: The manifest's nodes.
        agents: The `.agent` files.
        python: The listed Python files.
        diagnostics: What is wrong so far.
        new_code: What is left out.
    """

    located: ProjectLocation
    readable: bool = True
    manifest: ManifestFile | None = None
    node: Node | None = None
    agents: list[AgentSource] = field(default_factory=list[AgentSource])
    python: list[Path] = field(default_factory=list[Path])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    new_code: NewCode = field(init=False)

    def __post_init__(self) -> None:
        self.new_code = NewCode(self.located.root)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.located.root

    @property
    def lists_unread(self) -> bool:
        """Whether the manifest's lists of files have errors, so that their files are unknown."""
        if self.manifest is None or self.node is None:
            return False
        lists = [self.node.entries[key].place for key in ("agent_files", "python_files") if key in self.node.entries]
        found = [item for item in self.diagnostics if item.file == lists[0].file] if lists else []
        return any(
            (where.line, where.column) <= (item.line, item.column) < (where.end_line, where.end_column)
            for item in found
            for where in lists
            if item.code.startswith("LD1")
        ) or any(item.code == LD129.id for item in self.diagnostics)

    @property
    def sections_unread(self) -> bool:
        """Whether the manifest's toolsets or flows are nothing that has names."""
        entries = self.node.entries if self.manifest is not None and self.node is not None else {}
        return any(key in entries and entries[key].kind != "mapping" for key in ("toolsets", "flows"))

    def refused(self, section: Literal["toolsets", "flows", "models"]) -> set[str]:
        """The names that the manifest declares with errors that leave nothing of them."""
        if self.manifest is None or self.node is None or section not in self.node.entries:
            return set()
        return self.node.entries[section].entries.keys() - getattr(self.manifest, section).keys()

    @property
    def python_labels(self) -> list[str]:
        """The listed Python files as diagnostics name them."""
        return [file_label(self.root, path) for path in self.python]

    def place(self, *loc: str | int) -> Location:
        """The place of a value of the manifest."""
        return place_in(self.node, MANIFEST, loc)

    def key_place(self, *loc: str | int) -> Location:
        """The place of a key of the manifest."""
        return key_place_in(self.node, MANIFEST, loc)


def read_project(located: ProjectLocation) -> ProjectFiles:
    """Read and parse a project's manifest and agents; faults don't stop it."""
    files = ProjectFiles(located)
    files.new_code = read_new_code(located.root)
    if located.manifest is not None:
        if files.new_code.leaves_out(located.manifest):
            label = file_label(files.root, located.manifest)
            files.diagnostics.append(new_manifest(label, files.new_code.entry(label)[1]).at(Location(label)))
            files.readable = False
            return files
        _read_manifest(located.manifest, files)
        if not files.readable:
            return files
    paths = _list(files)
    files.agents = [_read_agent(located.root, path) for path in paths]
    if located.agent_file is not None:
        files.agents = _reached(files.agents, located.agent_file)
    files.agents = [_stand_in(source, located) for source in files.agents]
    for source in files.agents:
        files.diagnostics += source.diagnostics
    return files


def _read_manifest(path: Path, files: ProjectFiles) -> None:
    from llm_do.formats.manifest import parse_manifest

    label = file_label(files.root, path)
    read = read_text(path, label)
    files.diagnostics += read.diagnostics
    if read.text is not None:
        parsed = parse_manifest(read.text, label)
        files.diagnostics += parsed.diagnostics
        files.manifest, files.node = parsed.value, parsed.node
    files.readable = files.manifest is not None


def _list(files: ProjectFiles) -> list[Path]:
    """The listed agents; the Python files go into `files`."""
    if files.manifest is None:
        agents, python = _implied(files.located)
    else:
        agents = [(name, files.place("agent_files", index)) for index, name in enumerate(files.manifest.agent_files)]
        python = [(name, files.place("python_files", index)) for index, name in enumerate(files.manifest.python_files)]
    paths, faults = list_files(files.root, agents)
    modules, more = list_files(files.root, python)
    files.diagnostics += [*faults, *more]
    files.new_code.data_folders = files.manifest.data_folders if files.manifest is not None else ()
    agent_paths = [path for path in paths if not files.new_code.leaves_out(path)]
    for path, place in modules.items():
        if files.new_code.leaves_out(path):
            continue
        if path.suffix == ".py":
            files.python.append(path)
        else:
            files.diagnostics.append(not_python(file_label(files.root, path)).at(place))
    return agent_paths


def _implied(located: ProjectLocation) -> tuple[list[tuple[str, Location]], list[tuple[str, Location]]]:
    # A folder may hold very many files: only those with a matching name are examined.
    names = sorted(path.name for path in located.root.iterdir() if path.name.endswith(".agent"))
    named = located.agent_file.name if located.agent_file is not None else None
    agents = [
        name for name in names if (not name.startswith(".") or name == named) and not os.path.isdir(located.root / name)
    ]
    python = [name for name in _IMPLIED_PYTHON if os.path.lexists(path := located.root / name) and not path.is_dir()]
    return [(name, Location(name)) for name in agents], [(name, Location(name)) for name in python]


def _read_agent(root: Path, path: Path) -> AgentSource:
    from llm_do.formats.agent_file import parse_agent, readable_name

    label = file_label(root, path)
    read = read_text(path, label)
    if read.text is None:
        return AgentSource(path, label, None, None, "", -1, read.diagnostics)
    parsed = parse_agent(read.text, label)
    name = readable_name(parsed.node, read.text)
    return AgentSource(path, label, parsed.value, parsed.node, parsed.body, parsed.body_start, parsed.diagnostics, name)


def _stand_in(source: AgentSource, located: ProjectLocation) -> AgentSource:
    """The file that is read instead of an agent's own, or its own."""
    name = source.value.name if source.value is not None else None
    file = located.stand_ins.get(name) if name is not None else None
    if file is None:
        return source
    found = _read_agent(located.root, file)
    if found.value is None or found.value.name == name:
        return found
    fault = other_agent(found.label, found.value.name, str(name)).at(found.place(("name",)))
    return replace(source, diagnostics=(*source.diagnostics, fault))


def _reached(agents: Sequence[AgentSource], file: Path) -> list[AgentSource]:
    """The agents that a single file leads to among those beside it: faults of the others don't concern it."""
    by_name: dict[str, list[AgentSource]] = {}
    for source in agents:
        for name in source.names if source.failed or source.value is None else {source.value.name}:
            by_name.setdefault(name, []).append(source)
    kept: dict[str, AgentSource] = {}
    waiting = [source for source in agents if source.path == file]
    while waiting:
        source = waiting.pop()
        if source.label in kept:
            continue
        kept[source.label] = source
        if source.value is not None:
            listed = [name for name, _, _ in source.value.toolset_uses()]
            for name in (*listed, *source.value.handoffs):
                waiting += by_name.get(name, [])
    return [source for source in agents if source.label in kept]

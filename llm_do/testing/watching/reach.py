"""Which test cases a changed file can reach.

Where that isn't certain, a case counts as reached: Python code can call any agent and read any file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from llm_do._bounded_files import read_bounded
from llm_do._startup.frozen import frozen
from llm_do.linker.checks.unused_names import reachable
from llm_do.linker.python.positions import Facts, read_facts
from llm_do.linker.sources.test_files import CASSETTES, ENDING, FOLDER
from llm_do.models.providers.model_names import split_name
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import callers_by_name

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.testing.cases.case import Case, Column

__all__ = ["Connections", "Reach", "connections_of"]


@frozen
class Connections:
    """What of a project leads to what, as data that another process can send.

    Args:
        entry: The name of the entry.
        files: The labels of all files that linking read.
        own: The labels of the files that belong to an agent: its own, and its model's script.
        calls: The agents and flows that each agent or flow can call, directly or not, with itself.
        anywhere: Those that Python code may call.
        common: The labels of the scripts that every agent may use.
    """

    entry: str
    files: Sequence[str] = ()
    own: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    calls: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    anywhere: Sequence[str] = ()
    common: Sequence[str] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Connections:
        """The connections that `connections_of` found."""
        return cls(**data)

    def files_of(self, entry: str | None) -> set[str]:
        """The labels of the files that belong to whatever a run of an entry can call."""
        first = self.entry if entry is None else entry
        names = {name for start in (first, *self.anywhere) for name in self.calls.get(start, ())}
        return {label for name in names for label in self.own.get(name, ())}


def connections_of(project: Project) -> dict[str, Any]:
    """The connections of a project, as JSON data."""
    callers = callers_by_name(project.registry)
    facts = [_read_facts(path) for path in project.python_files]
    strings = {text for each in facts for text in each.strings}
    anything = any(each.calls_anything for each in facts)
    return {
        "entry": project.entry.name,
        "files": [_label(project.root, path) for path in project.files],
        "own": {name: list(_own_files(project.root, spec)) for name, spec in callers.items()},
        "calls": {name: sorted(reachable([name], callers)) for name in callers},
        "anywhere": sorted(callers if anything else callers.keys() & strings),
        "common": [
            label
            for model in (project.model, *project.model_aliases.values())
            for label in _scripts(project.root, model)
        ],
    }


class Reach:
    """What the files of a project mean to its test cases.

    Args:
        root: The project's folder.
        connections: What of the project leads to what.
        cases: Its cases.
        columns: The columns that they are run in, by the label of their file.
    """

    def __init__(
        self,
        root: Path,
        connections: Connections,
        cases: Sequence[Case],
        columns: Mapping[str, Sequence[Column]],
    ) -> None:
        self._root = root
        self._connections = connections
        self._cases = cases
        self._columns = columns

    def of(self, changed: Iterable[Path]) -> set[str]:
        """The ids of the cases that changed files, named by absolute paths, can reach."""
        return {case.id for path in changed for case in self._of_file(_label(self._root, path))}

    def is_source(self, path: Path) -> bool:
        """Whether a file is one that people write: not a recording, and not data."""
        label = _label(self._root, path)
        if label.startswith(f"{FOLDER}/") and label.endswith((ENDING, ".py")):
            return True
        return label in self._connections.files or label in self._private or label in self._connections.common

    def is_recording(self, path: Path) -> bool:
        """Whether a file is a cassette."""
        return _label(self._root, path).startswith(f"{FOLDER}/{CASSETTES}/")

    def _of_file(self, label: str) -> Iterable[Case]:
        own = [case for case in self._cases if case.source.label == label]
        if own:
            return own
        if label.startswith(f"{FOLDER}/{CASSETTES}/"):
            return [case for case in self._cases if label in self._cassettes(case)]
        if label.startswith(f"{FOLDER}/") and label.endswith(".py"):
            return [case for case in self._cases if _has_python_check(case)]
        if label in self._private and label not in self._connections.common:
            return [case for case in self._cases if label in self._files_of(case)]
        return self._cases

    def _cassettes(self, case: Case) -> set[str]:
        names = [None, *(column.name for column in self._columns_of(case))]
        return {case.cassette(name).as_posix() for name in names}

    def _columns_of(self, case: Case) -> Sequence[Column]:
        return self._columns.get(case.source.label, ())

    @cached_property
    def _private(self) -> set[str]:
        """The files that only some cases can use: those of agents, variants and scripts."""
        agents = {label for labels in self._connections.own.values() for label in labels}
        return agents | {label for case in self._cases for label in self._named_by(case)}

    def _files_of(self, case: Case) -> set[str]:
        return {*self._named_by(case), *self._connections.files_of(case.entry)}

    def _named_by(self, case: Case) -> Iterator[str]:
        """The scripts and variants that a case names."""
        for options in (case, *self._columns_of(case)):
            for model in (options.model, *options.models.values()):
                yield from _scripts(self._root, model)
        for column in self._columns_of(case):
            yield from column.agents.values()


def _has_python_check(case: Case) -> bool:
    contents = [case.expect.output, *case.expect.files.values()]
    return any(content is not None and content.python is not None for content in contents)


def _own_files(root: Path, spec: object) -> Iterator[str]:
    if isinstance(spec, AgentSpec):
        if spec.place is not None and not spec.place.file.endswith((".py", ".json")):
            yield spec.place.file
        yield from _scripts(root, spec.model)


def _scripts(root: Path, model: object) -> Iterator[str]:
    """The labels of the script files among the names of a model or of several."""
    names = cast("Sequence[object]", model) if isinstance(model, list | tuple) else (model,)
    for name in names:
        if isinstance(name, str) and split_name(name)[0] == "script":
            yield _label(root, root / split_name(name)[1])


def _label(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _read_facts(path: Path) -> Facts:
    try:
        source = read_bounded(path)
        return read_facts(ast.parse(source), source)
    except (OSError, SyntaxError, ValueError):
        return Facts(calls_anything=True)

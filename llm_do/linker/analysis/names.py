"""The namespace of a project that is being linked: register names, look them up, report faults.

The finished namespace is a `llm_do.project.registry.Registry`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import names as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.project.registry import Kind, Registered
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE
from llm_do.text.words import did_you_mean

__all__ = ["Broken", "Names"]

_MOST_PROPOSALS = 50
"""Finding the nearest of many names is slow; a project with more unknown names than this has bigger problems."""


@frozen
class Broken:
    """The names that broken files may have declared, which aren't reported as unknown.

    `names` has the stem and readable name of each file that failed to parse, `words` all words of the Python files that
    failed to import (`python` is set if there are any), since each may be an export. `anything` is set if the list of
    files can't be read: then any name may have been declared.
    """

    names: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    python: bool = False
    anything: bool = False

    def may_have(self, name: str) -> bool:
        """Whether a broken file may have declared a name."""
        return self.anything or name in self.names or name in self.words


@dataclass(slots=True)
class Names:
    """The names registered so far, with the diagnostics found on the way.

    `refused` has the names whose registration failed and was reported. `functions` (each with its file) and `toolsets`
    are those in the project's Python files, exported or not; `renamed` has the file and the name of the export of what
    is bound to another name. `dollars` is set if the project has a budget in US dollars, so that the price of every
    model must be known. `aliases` are those of models, the person's own included. `packages` has the versions of
    installed packages whose toolsets and models the project uses, `unread_packages` what it uses of packages that
    weren't imported. `variables` returns what `${NAME}` may stand for.
    """

    broken: Broken = field(default_factory=Broken)
    taken: dict[str, Registered] = field(default_factory=dict[str, Registered])
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    refused: set[str] = field(default_factory=set[str])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    toolsets: dict[str, str] = field(default_factory=dict[str, str])
    renamed: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    root: Path | None = None
    dollars: bool = False
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    packages: dict[str, str] = field(default_factory=dict[str, str])
    unread_packages: list[str] = field(default_factory=list[str])
    variables: Callable[[], Mapping[str, str]] = lambda: os.environ
    _proposed: int = 0

    def register(self, name: str, kind: Kind, value: object, place: Location) -> bool:
        """Register an object under a name; report both locations when the name is taken."""
        if name in BUILTINS:
            self.report(problems.reserved_name(name), place)
            self.refused.add(name)
            return False
        other = self.taken.get(name)
        if other is not None:
            self.report(problems.duplicate_name(name, other.kind, other.place), place)
            return False
        self.taken[name] = Registered(name, kind, value, place)
        return True

    def look_up(self, name: str, kinds: Sequence[Kind], what: str, place: Location) -> Registered | None:
        """Look up a name of one of the kinds; report it if there is none."""
        found = self.taken.get(name)
        if found is not None and found.kind in kinds:
            return found
        if found is None and name in self.refused:
            return None
        if found is not None:
            self.report(problems.wrong_kind(name, found.kind, what), place)
        elif "toolset" in kinds and name in BUILTINS:
            return None
        elif name in BUILTINS:
            self.report(problems.built_in_name(name, what), place)
        elif not self.broken.may_have(name):
            self.report(self._unknown(name, kinds, _noun(what)), place)
        return None

    def report(self, problem: Problem, place: Location) -> None:
        """Add the diagnostic of a problem."""
        self.faults.append(problem.at(place))

    def may_propose(self) -> bool:
        """Count a search for the nearest name, and return whether it may be made: thousands would take seconds."""
        self._proposed += 1
        return self._proposed <= _MOST_PROPOSALS

    def _unknown(self, name: str, kinds: Sequence[Kind], noun: str) -> Problem:
        file = self.functions.get(name) if "tool" in kinds or "toolset" in kinds else None
        file = file or (self.toolsets.get(name) if "toolset" in kinds else None)
        if file is not None and name in self.renamed:
            return problems.renamed_export(noun, name, *self.renamed[name])
        if file is not None:
            return problems.unexported_name(noun, name, file, "TOOLSETS" if "toolset" in kinds else "TOOLS")
        if "toolset" in kinds and name in CONFIGURABLE:
            return problems.toolset_type(noun, name, [each for each in BUILTINS if each.startswith(name)])
        if not self.may_propose():
            return problems.unknown_name(noun, name, None)
        fitting = [item.name for item in self.taken.values() if item.kind in kinds]
        builtins = list(BUILTINS) if "toolset" in kinds else []
        hint = problems.without_file(name, fitting, self.functions)
        hint = hint or did_you_mean(name, [*fitting, *builtins]) or did_you_mean(name, list(self.taken))
        return problems.unknown_name(noun, name, hint)


def _noun(what: str) -> str:
    """Return the noun without its article; an agent is accepted wherever a toolset is."""
    return "toolset or agent" if what == "a toolset" else what.partition(" ")[2]

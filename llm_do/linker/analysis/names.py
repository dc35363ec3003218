"""The one namespace while a project is being linked: registering names, looking them up, reporting what is wrong.

The finished namespace is a `llm_do.project.registry.Registry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import Problem, names as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.project.builtin_toolsets import BUILTINS
from llm_do.project.registry import Kind, Registered
from llm_do.text.words import did_you_mean

__all__ = ["Broken", "Names"]

_MOST_PROPOSALS = 50
"""Looking for the nearest of many names is slow; a project with more unknown names than this has bigger problems."""


@frozen
class Broken:
    """What a file that couldn't be read may have declared: names that aren't reported as unknown.

    Args:
        names: Stem and readable name of every file that failed to parse.
        words: All words of the Python files that couldn't be imported; each may be an export.
        python: Whether there are such files.
        anything: What lists the files can't be read, so that any name may have been declared.
    """

    names: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    python: bool = False
    anything: bool = False

    def may_have(self, name: str) -> bool:
        """Whether a name may be one that a broken file would have declared."""
        return self.anything or name in self.names or name in self.words


@dataclass(slots=True)
class Names:
    """The names registered so far.

    Args:
        broken: What is known of files that failed.
        taken: Name to the object that has it.
        faults: The diagnostics so far.
        refused: Names whose registration failed, which has been reported.
        functions: Functions of the project's Python files, exported or not, each with its file.
        toolsets: Toolsets bound to a name there, exported or not.
        root: The project's folder.
        dollars: The project has a budget in US dollars, so that every model's price must be known.
    """

    broken: Broken = field(default_factory=Broken)
    taken: dict[str, Registered] = field(default_factory=dict[str, Registered])
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    refused: set[str] = field(default_factory=set[str])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    toolsets: dict[str, str] = field(default_factory=dict[str, str])
    root: Path | None = None
    dollars: bool = False
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
        """Look up a name of one of the kinds; report it when there is none."""
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

    def _unknown(self, name: str, kinds: Sequence[Kind], noun: str) -> Problem:
        file = self.functions.get(name) if "tool" in kinds or "toolset" in kinds else None
        file = file or (self.toolsets.get(name) if "toolset" in kinds else None)
        if file is not None:
            return problems.unexported_name(noun, name, file, "TOOLS" if "tool" in kinds else "TOOLSETS")
        self._proposed += 1
        if self._proposed > _MOST_PROPOSALS:
            return problems.unknown_name(noun, name, None)
        fitting = [item.name for item in self.taken.values() if item.kind in kinds]
        builtins = list(BUILTINS) if "toolset" in kinds else []
        hint = did_you_mean(name, [*fitting, *builtins]) or did_you_mean(name, list(self.taken))
        return problems.unknown_name(noun, name, hint)


def _noun(what: str) -> str:
    """The noun without its article; where a toolset is expected, agents fit too."""
    return "toolset or agent" if what == "a toolset" else what.partition(" ")[2]

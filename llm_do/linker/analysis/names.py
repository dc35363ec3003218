"""The one namespace while a project is being linked: who has a name, who asks for it, and what is said otherwise.

The finished namespace is a `llm_do.project.registry.Registry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm_do._frozen import frozen
from llm_do.diagnostics.codes import Problem, diagnostic
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.project.builtin_toolsets import BUILTINS
from llm_do.project.registry import Kind, Registered
from llm_do.text.words import did_you_mean, with_article

__all__ = ["Broken", "Names"]

_MOST_PROPOSALS = 50
"""Looking for the nearest of many names is slow; a project with more unknown names than this has other worries."""

_HOW = {"tool": "`tools`", "toolset": "`toolsets`", "agent": "`toolsets`", "flow": "`toolsets`"}


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
    """The names given out so far.

    Args:
        broken: What is known of files that failed.
        taken: Name to what has it.
        faults: What was wrong so far.
        refused: Names that something was to have and couldn't; that is told once.
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
        """Give a name to an object; a diagnostic that names both places when something has it already."""
        if name in BUILTINS:
            self.fault("LD203", f"`{name}` is the name of a built-in toolset", place, "choose another name")
            self.refused.add(name)
            return False
        other = self.taken.get(name)
        if other is not None:
            message = f"`{name}` is already the name of the {other.kind} at {other.place}"
            self.fault("LD202", message, place, "rename one of the two")
            return False
        self.taken[name] = Registered(name, kind, value, place)
        return True

    def look_up(self, name: str, kinds: Sequence[Kind], what: str, place: Location) -> Registered | None:
        """What a name stands for, when it is of one of the kinds; else a diagnostic."""
        found = self.taken.get(name)
        if found is not None and found.kind in kinds:
            return found
        if found is None and name in self.refused:
            return None
        if found is not None:
            hint = f"list it under {_HOW[found.kind]}" if what in ("a tool", "a toolset") else None
            self.fault("LD204", f"`{name}` is {with_article(found.kind)}, not {what}", place, hint)
        elif "toolset" in kinds and name in BUILTINS:
            return None
        elif name in BUILTINS:
            hint = f"list it under {_HOW['toolset']}" if what == "a tool" else None
            self.fault("LD204", f"`{name}` is a built-in toolset, not {what}", place, hint)
        elif not self.broken.may_have(name):
            self.fault("LD201", f"there is no {_noun(what)} `{name}`", place, self._proposal(name, kinds))
        return None

    def report(self, problem: Problem, place: Location) -> None:
        """Add the diagnostic of a problem."""
        self.faults.append(problem.at(place))

    def fault(self, code: str, message: str, place: Location, hint: str | None = None) -> None:
        """Add a diagnostic."""
        self.faults.append(diagnostic(code, message, place, hint))

    def _proposal(self, name: str, kinds: Sequence[Kind]) -> str | None:
        file = self.functions.get(name) if "tool" in kinds or "toolset" in kinds else None
        file = file or (self.toolsets.get(name) if "toolset" in kinds else None)
        if file is not None:
            exports = "TOOLS" if "tool" in kinds else "TOOLSETS"
            return f"{file} has it, but doesn't export it: put it into its list {exports}, as in {exports} = [{name}]"
        self._proposed += 1
        if self._proposed > _MOST_PROPOSALS:
            return None
        fitting = [item.name for item in self.taken.values() if item.kind in kinds]
        builtins = list(BUILTINS) if "toolset" in kinds else []
        return did_you_mean(name, [*fitting, *builtins]) or did_you_mean(name, list(self.taken))


def _noun(what: str) -> str:
    """Say what is missing without its article; a toolset's place takes agents too."""
    return "toolset or agent" if what == "a toolset" else what.partition(" ")[2]

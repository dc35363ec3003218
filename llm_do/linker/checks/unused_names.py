"""Warn about parts of a linked project that are never used.

Python code is assumed to call whatever it names, even in a string; if code calls a name that it computes, anything may
be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llm_do.diagnostics.codes import unused as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.python.exports import Export
from llm_do.linker.python.positions import Facts
from llm_do.linker.python.python_files import LoadedFile, PythonFiles
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, every_caller, listed_names
from llm_do.project.registry import Registered

__all__ = ["find_unused", "reachable"]


def _names_used(caller: AgentSpec | FlowSpec) -> list[str]:
    """Return every name that an agent lists or a flow runs, including agents and flows that code passes to it."""
    kind = "flow" if isinstance(caller, FlowSpec) else "agent"
    names: list[str] = []
    for item, _ in every_caller({caller.name: Registered(caller.name, kind, caller)}):
        names += item.names() if isinstance(item, FlowSpec) else listed_names(item)
    return names


def reachable(start: Iterable[str], callers: Mapping[str, AgentSpec | FlowSpec]) -> set[str]:
    """Return the agents and flows that are reachable from some names through what agents list and flows run."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in callers and name not in seen:
            seen.add(name)
            waiting.extend(_names_used(callers[name]))
    return seen


def find_unused(
    started: set[str],
    registered: Mapping[str, Registered],
    python: PythonFiles,
    exports: Iterable[Export],
    used_files: set[str],
    configured: Mapping[str, Location],
) -> list[Diagnostic]:
    """Warn about unreachable agents and flows, Python files without effect, and toolsets that no agent lists.

    Args:
        started: What runs begin with: the entry, unless it is a function, and what tests run.
        registered: The project's names.
        python: Its Python files.
        exports: What these export.
        used_files: The labels of files that references lead to.
        configured: The manifest's toolsets, each with its place.
    """
    agents: dict[str, AgentSpec] = {name: item.value for name, item in registered.items() if item.kind == "agent"}
    anything = any(facts.calls_anything for facts in python.facts.values())
    mentioned = set[str]().union(*(facts.strings for facts in python.facts.values()))
    flows: dict[str, FlowSpec] = {name: item.value for name, item in registered.items() if item.kind == "flow"}
    callers: Mapping[str, AgentSpec | FlowSpec] = {**agents, **flows}
    listed = {name for caller in callers.values() for name in _names_used(caller)} | started
    found: list[Diagnostic] = []
    if not anything:
        start = [*sorted(started), *(callers.keys() & mentioned)]
        found += [_unreached(registered[name]) for name in _tops(start, callers)]
    found += _unused_files(python, exports, used_files, listed, anything)
    found += [
        problems.unused_toolset(name).at(place)
        for name, place in configured.items()
        if name not in listed and name not in mentioned and not anything
    ]
    return found


def _tops(start: Iterable[str], callers: Mapping[str, AgentSpec | FlowSpec]) -> list[str]:
    """Return the agents and flows that nothing reaches; a flow stands for its members and what they reach."""
    reached = reachable(start, callers)
    lost = [name for name, caller in callers.items() if isinstance(caller, FlowSpec) and name not in reached]
    below = {name: reachable([name], callers) for name in lost}
    inner = {inner for name in lost for inner in below[name] if inner != name}
    found: list[str] = []
    for name in sorted(lost, key=inner.__contains__):  # those inside of others only where they are in a circle
        if name not in reached:
            found.append(name)
            reached |= below[name]
    return [*found, *(name for name in callers if name not in reached)]


def _unreached(item: Registered) -> Diagnostic:
    return problems.unreachable(item.kind, item.name).at(item.place or Location(""))


def _unused_files(
    python: PythonFiles, exports: Iterable[Export], used: set[str], listed: set[str], anything: bool
) -> list[Diagnostic]:
    by_file: dict[str, list[Export]] = {}
    for export in exports:
        by_file.setdefault(export.label, []).append(export)
    found: list[Diagnostic] = []
    for file in python.files:
        mine = by_file.get(file.label, [])
        if file.label in used or _is_imported(file, python) or (anything and mine) or file.facts.acts:
            continue
        elsewhere = _strings(python.facts, file.label)
        if any(item.kind == "agent" or item.name in listed or item.name in elsewhere for item in mine):
            continue
        problem = problems.unused_exports if mine else problems.no_exports
        found.append(problem(file.label).at(Location(file.label)))
    return found


def _is_imported(file: LoadedFile, python: PythonFiles) -> bool:
    """Whether an import elsewhere may refer to this file, or it makes a folder with other files a package."""
    parts = file.name.split(".")
    names = {".".join(parts[count:]) for count in range(len(parts))}
    if any(not names.isdisjoint(facts.modules) for label, facts in python.facts.items() if label != file.label):
        return True
    folder, _, name = file.label.rpartition("/")
    return name == "__init__.py" and any(
        other is not file and other.label.startswith(f"{folder}/") for other in python.files
    )


def _strings(facts: Mapping[str, Facts], label: str) -> set[str]:
    return set[str]().union(*(item.strings for other, item in facts.items() if other != label))

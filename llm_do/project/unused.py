"""What a linked project has and never uses: warnings.

What Python code may call is judged by the names it mentions, so that a name in a string counts as used; where code
calls a name that it computes, everything may be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llm_do.project.agents import AgentSpec, ToolsetRef
from llm_do.project.exports import Export
from llm_do.project.positions import Facts
from llm_do.project.python_files import PythonFiles
from llm_do.project.registry import Registered
from llm_do.spec.codes import diagnostic
from llm_do.spec.diagnostics import Diagnostic, Place

__all__ = ["find_unused", "names_listed", "reachable"]


def names_listed(spec: AgentSpec) -> list[str]:
    """Every name that an agent lists as a tool, a toolset or a hand-over."""
    names = [tool for tool in spec.tools if isinstance(tool, str)]
    for item in (*spec.toolsets, *spec.handoffs):
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, ToolsetRef | AgentSpec):
            names.append(item.name)
    return names


def reachable(start: Iterable[str], agents: Mapping[str, AgentSpec]) -> set[str]:
    """The agents that can be reached from some names, through what agents list."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in agents and name not in seen:
            seen.add(name)
            waiting.extend(names_listed(agents[name]))
    return seen


def find_unused(
    entry: str | None,
    registered: Mapping[str, Registered],
    python: PythonFiles,
    exports: Iterable[Export],
    used_files: set[str],
    configured: Mapping[str, Place],
) -> list[Diagnostic]:
    """Warn of agents that can't be reached, Python files that do nothing, and toolsets that nobody lists.

    Args:
        entry: Name of the entry agent, None for a function.
        registered: Every name.
        python: The project's Python files.
        exports: What they export.
        used_files: Labels of the files that references lead to.
        configured: The manifest's toolsets, each with its place.
    """
    agents: dict[str, AgentSpec] = {name: item.value for name, item in registered.items() if item.kind == "agent"}
    anything = any(facts.calls_anything for facts in python.facts.values())
    mentioned = set[str]().union(*(facts.strings for facts in python.facts.values()))
    listed = {name for spec in agents.values() for name in names_listed(spec)}
    found: list[Diagnostic] = []
    if not anything:
        reached = reachable([*([entry] if entry else []), *(agents.keys() & mentioned)], agents)
        found += [
            diagnostic(
                "LD801",
                f"nothing reaches the agent `{name}`",
                registered[name].place or Place(""),
                "list it in another agent's `toolsets`, or remove it",
            )
            for name in agents
            if name not in reached
        ]
    found += _unused_files(python, exports, used_files, listed, anything)
    found += [
        diagnostic("LD803", f"no agent lists the toolset `{name}`", place, "list it in an agent's `toolsets`")
        for name, place in configured.items()
        if name not in listed and name not in mentioned and not anything
    ]
    return found


def _unused_files(
    python: PythonFiles, exports: Iterable[Export], used: set[str], listed: set[str], anything: bool
) -> list[Diagnostic]:
    by_file: dict[str, list[Export]] = {}
    for export in exports:
        by_file.setdefault(export.label, []).append(export)
    found: list[Diagnostic] = []
    for file in python.files:
        mine = by_file.get(file.label, [])
        if file.label in used or file.label in python.imported or (anything and mine):
            continue
        elsewhere = _strings(python.facts, file.label)
        if any(item.kind == "agent" or item.name in listed or item.name in elsewhere for item in mine):
            continue
        message = (
            f"nothing uses what {file.label} exports" if mine else f"{file.label} exports nothing that llm-do knows"
        )
        found.append(
            diagnostic("LD802", message, Place(file.label), "remove it from python_files, or export something")
        )
    return found


def _strings(facts: Mapping[str, Facts], label: str) -> set[str]:
    return set[str]().union(*(item.strings for other, item in facts.items() if other != label))

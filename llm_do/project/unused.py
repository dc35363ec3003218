"""What a linked project has and never uses: warnings.

What Python code may call is judged by the names it mentions, so that a name in a string counts as used; where code
calls a name that it computes, everything may be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llm_do.project.agents import AgentSpec, ToolsetRef
from llm_do.project.exports import Export
from llm_do.project.flows import FlowSpec
from llm_do.project.positions import Facts
from llm_do.project.python_files import LoadedFile, PythonFiles
from llm_do.project.registry import Registered
from llm_do.spec.codes import diagnostic
from llm_do.spec.diagnostics import Diagnostic, Place

__all__ = ["find_unused", "names_in_flow", "names_listed", "reachable"]


def names_listed(spec: AgentSpec) -> list[str]:
    """Every name that an agent lists as a tool, a toolset or a hand-over."""
    names = [tool for tool in spec.tools if isinstance(tool, str)]
    for item in (*spec.toolsets, *spec.handoffs):
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, ToolsetRef | AgentSpec | FlowSpec):
            names.append(item.name)
    return names


def names_in_flow(flow: FlowSpec) -> list[str]:
    """Every name that a flow refers to, and those that the agents list which code has given it."""
    names = list(flow.names())
    for member in flow.members.values():
        if isinstance(member, AgentSpec):
            names += names_listed(member)
        elif isinstance(member, FlowSpec):
            names += names_in_flow(member)
    return names


def reachable(start: Iterable[str], callers: Mapping[str, AgentSpec | FlowSpec]) -> set[str]:
    """The agents and flows that can be reached from some names, through what agents list and flows run."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in callers and name not in seen:
            seen.add(name)
            caller = callers[name]
            waiting.extend(names_in_flow(caller) if isinstance(caller, FlowSpec) else names_listed(caller))
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
        entry: Name of the entry agent or flow, None for a function.
        registered: Every name.
        python: The project's Python files.
        exports: What they export.
        used_files: Labels of the files that references lead to.
        configured: The manifest's toolsets, each with its place.
    """
    agents: dict[str, AgentSpec] = {name: item.value for name, item in registered.items() if item.kind == "agent"}
    anything = any(facts.calls_anything for facts in python.facts.values())
    mentioned = set[str]().union(*(facts.strings for facts in python.facts.values()))
    flows: dict[str, FlowSpec] = {name: item.value for name, item in registered.items() if item.kind == "flow"}
    listed = {name for spec in agents.values() for name in names_listed(spec)}
    listed |= {name for flow in flows.values() for name in names_in_flow(flow)} | ({entry} if entry else set())
    found: list[Diagnostic] = []
    if not anything:
        callers = {**agents, **flows}
        reached = reachable([*([entry] if entry else []), *(callers.keys() & mentioned)], callers)
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
        if file.label in used or _is_imported(file, python) or (anything and mine) or file.facts.acts:
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


def _is_imported(file: LoadedFile, python: PythonFiles) -> bool:
    """Whether an import in another file may mean this one, or it makes a package of a folder with other files."""
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

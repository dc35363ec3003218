"""Check the state machines of a project and describe them as data: one per toolkit, one per agent with `states:`.

`llm_do.project.gates` analyses gates; `llm_do.ui.reports.machine_diagrams` draws the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import machines as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import ToolkitError, UsageError
from llm_do.linker.analysis.inventory import Inventory
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.checks.tool_checks import short_reason
from llm_do.linker.python.definitions import definition_of
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.flow_spec import every_agent
from llm_do.project.gates import Gate, GatedTools, GatedToolset, analyse, gate_of, wire_name
from llm_do.text.words import did_you_mean
from llm_do.tools import options_of

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_machines", "machines_data"]


@frozen
class StateMachine:
    """A toolkit's gates, or those that an agent declares.

    Args:
        name: The toolkit's or the agent's name.
        kind: Which of the two.
        gates: Tool to gate, each with its place as far as that is known.
        place: Where the machine is declared.
        functions: What tools were made of; their decorators may declare the gates.
        initial: States that are unlocked in the beginning.
        free: Tools of the agent that no gate of this machine concerns.
        toolkit: What the toolkit knows of its tools.
        faults: The gates that the agent declares for tools that it doesn't have.
    """

    name: str
    kind: Literal["toolkit", "agent"]
    gates: Mapping[str, Gate]
    place: Location
    functions: Mapping[str, object] = field(default_factory=dict[str, object])
    initial: frozenset[str] = frozenset()
    free: int = 0
    toolkit: GatedTools | None = None
    faults: Sequence[Diagnostic] = ()

    def place_of(self, tool: str, root: Path, state: str = "") -> Location:
        """Return where a tool's gate names the state, else where the gate or the machine is declared."""
        definition = definition_of(self.functions.get(tool), root)
        if definition is not None:
            return definition.mention_of(state) or definition.start
        return self.gates[tool].place or self.place


def machines_data(project: Project, agent: str | None = None) -> list[dict[str, Any]]:
    """Return the state machines of a project, or of one agent and the toolkits that it lists, as JSON data."""
    found = [each for each in _machines(project) if not all(gate.empty for gate in each.gates.values())]
    if agent is not None:
        spec = project.registry.agent(agent)
        if spec is None:
            raise UsageError(
                f"the project has no agent called {agent!r}",
                hint=did_you_mean(agent, project.registry) or "`llm-do graph` shows its agents.",
            )
        listed = _listed_toolkits(spec, project)
        found = [each for each in found if each.name == agent or each.name in listed]
    return [
        {
            "name": each.name,
            "kind": each.kind,
            "initial": sorted(each.initial),
            "gates": {name: gate.to_dict() for name, gate in each.gates.items()},
        }
        for each in found
    ]


def check_machines(project: Project) -> list[Diagnostic]:
    """Find toolkits that can't be used, gates of tools that don't exist, and gates that can't work."""
    found: list[Diagnostic] = []
    public = project.modules.public if project.modules is not None else str
    unlocked_by: dict[str, tuple[str, str]] = {}
    for machine in _machines(project):
        if machine.toolkit is not None:
            for tool, gate in machine.gates.items():
                unlocked_by.update(dict.fromkeys(gate.enables, (tool, machine.name)))
            try:
                machine.toolkit.check()
            except ToolkitError as error:
                hint = error.hint.rstrip(".") if error.hint is not None else None
                problem = problems.unusable_toolkit(machine.name, short_reason(error, public), hint)
                found.append(problem.at(machine.place))
            found += _faults(machine, project.root)
        else:
            found += machine.faults or _faults(machine, project.root, unlocked_by)
    return found


def _machines(project: Project) -> Iterator[StateMachine]:
    """Return the machines of toolkits, then those that agents declare."""
    for item in project.registry.values():
        value: object = item.value
        if item.kind == "toolset" and isinstance(value, GatedToolset):
            kit, place = value.gated, item.place or Location(item.name)
            yield StateMachine(item.name, "toolkit", kit.gates, place, kit.functions, kit.unlocked, toolkit=kit)
    inventory = Inventory(project.registry)
    for spec, place in every_agent(project.registry):
        machine = _agent_machine(project, spec, inventory, place or Location(spec.name))
        if machine.gates:
            yield machine


def _agent_machine(project: Project, spec: AgentSpec, inventory: Inventory, place: Location) -> StateMachine:
    """Return the machine that an agent declares, with the tools' names on the wire."""
    gates: dict[str, Gate] = {}
    functions: dict[str, object] = {}
    faults: list[Diagnostic] = []
    for item in spec.tools:
        registered = project.registry.get(item) if isinstance(item, str) else None
        function: object = registered.value if registered is not None else item
        options = options_of(function)
        if options.gated:
            name = item if isinstance(item, str) else options.name or getattr(item, "__name__", "")
            at = registered.place if registered is not None else None
            gates[name], functions[name] = replace(gate_of(options), place=at), function
    if not gates and not spec.states:
        return StateMachine(spec.name, "agent", gates, place)
    known = inventory.of(spec)
    names = {tool.name: (tool.toolset, tool.tool) for tool in known.tools}
    for written, gate in spec.states.items():
        name = wire_name(written, names)
        if name not in names and not may_be_listed(name, names, known.open, project.registry, own="::" in written):
            problem = problems.gate_of_unknown_tool(written, name, list(names))
            faults.append(problem.at(gate.place or place))
        gates[name] = gate
        functions.pop(name, None)
    free = sum(tool.name not in gates for tool in known.tools) + len(known.open)
    return StateMachine(spec.name, "agent", gates, place, functions, free=free, faults=faults)


def _listed_toolkits(spec: AgentSpec, project: Project) -> set[str]:
    """Return the registered names of the toolkits among an agent's toolsets."""
    names: set[str] = set()
    for item in spec.toolsets:
        name = item if isinstance(item, str) else item.name if isinstance(item, ToolsetRef) else None
        if name is None:
            names |= {known.name for known in project.registry.values() if known.value is item}
        elif name in project.registry and isinstance(project.registry[name].value, GatedToolset):
            names.add(name)
    return names


def _faults(
    machine: StateMachine, root: Path, unlocked_by: Mapping[str, tuple[str, str]] | None = None
) -> Iterator[Diagnostic]:
    """Find what can't work in a machine: only warnings, since a run may continue from other states."""
    found = analyse(machine.gates, machine.initial)
    what = f"the {machine.kind} `{machine.name}`"
    enabled = sorted(machine.initial.union(*(gate.enables for gate in machine.gates.values())))
    for state, tools in found.unreached.items():
        at = machine.place_of(tools[0], root, state)
        if unlocked_by and state in unlocked_by:
            yield problems.state_of_toolkit(what, state, tools, *unlocked_by[state]).at(at)
        else:
            yield problems.unreachable_state(what, state, tools, enabled).at(at)
    reported = {tool for tools in found.unreached.values() for tool in tools}
    for tool in found.never:
        if tool not in reported:
            yield problems.never_available(what, tool).at(machine.place_of(tool, root))
    for end in found.dead_ends if not machine.free else ():
        yield problems.dead_end(what, end.path, end.unlocked).at(machine.place)

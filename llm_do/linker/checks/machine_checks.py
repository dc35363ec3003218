"""The state machines of a project, and what `llm-do check` says of them: one a toolkit, one an agent with `states:`.

What can be proved of gates is `llm_do.project.gates`; drawing them is `llm_do.toolkits.diagrams`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from llm_do._frozen import frozen
from llm_do.diagnostics.codes import machines as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import ToolkitError
from llm_do.linker.analysis.inventory import Inventory
from llm_do.linker.checks.tool_checks import short_reason
from llm_do.linker.python.definitions import definition_of
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import every_agent
from llm_do.project.gates import Gate, analyse
from llm_do.project.tool_schemas import gated_toolset
from llm_do.tools import ToolOptions, options_of

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["StateMachine", "check_machines", "gate_of", "machines", "wire_name"]

_Rule: TypeAlias = "tuple[Gate, Location, object]"
"""A gate, where it stands, and the function that says it of itself, if one does."""


@frozen
class StateMachine:
    """The gates that belong together.

    Args:
        name: The toolkit's or the agent's name.
        kind: Which of the two.
        gates: Tool to gate.
        place: Where it is declared.
        places: Where single gates are declared, as far as that is known.
        functions: What tools were made of; their decorators may declare the gates.
        initial: States that are unlocked in the beginning.
        free: Tools of the agent that no gate of this machine concerns.
    """

    name: str
    kind: str
    gates: Mapping[str, Gate]
    place: Location
    places: Mapping[str, Location]
    initial: frozenset[str] = frozenset()
    free: int = 0
    functions: Mapping[str, object] = field(default_factory=dict[str, object])

    def place_of(self, tool: str, root: Path, state: str = "") -> Location:
        """Where a tool's gate is declared, at best where it speaks of a state; else where the machine is."""
        definition = definition_of(self.functions.get(tool), root)
        if definition is not None:
            return definition.said(state) or definition.start
        return self.places.get(tool, self.place)


def gate_of(options: ToolOptions) -> Gate:
    """The gate that a tool's options describe."""
    return Gate(
        tuple(options.required_states),
        tuple(options.forbidden_states),
        tuple(options.required_context),
        tuple(options.enables_states),
        tuple(options.disables_states),
    )


def wire_name(name: str, tools: Mapping[str, tuple[str | None, str]]) -> str:
    """The name on the wire of a tool written as `toolkit::tool`, or as it is.

    Example:
        >>> wire_name("plane::select", {}), wire_name("plane::select", {"select": ("plane", "select")})
        ('plane_select', 'select')
    """
    toolkit, separator, tool = name.partition("::")
    if not separator:
        return name
    prefixed = f"{toolkit}_{tool}"
    if prefixed in tools:
        return prefixed
    return next((wire for wire, known in tools.items() if known == (toolkit, tool)), prefixed)


def machines(project: Project) -> list[StateMachine]:
    """Every state machine of a project: toolkits that have states, then agents' own."""
    found = [machine for machine, _ in _toolkits(project)]
    inventory = Inventory(project.registry)
    for spec, place in _agents(project):
        rules, _ = _declared(project, spec, inventory, place)
        if rules:
            found.append(_of_agent(spec, rules, inventory, place))
    return [machine for machine in found if not all(gate.empty for gate in machine.gates.values())]


def check_machines(project: Project) -> list[Diagnostic]:
    """Find toolkits that can't be used, gates of tools that don't exist, and what can't work in a machine."""
    found: list[Diagnostic] = []
    public = project.modules.public if project.modules is not None else str
    kits: dict[str, tuple[str, str]] = {}
    for machine, toolkit in _toolkits(project):
        for tool, gate in machine.gates.items():
            kits.update(dict.fromkeys(gate.enables, (tool, machine.name)))
        try:
            toolkit.gated.check()
        except ToolkitError as error:
            hint = error.hint.rstrip(".") if error.hint is not None else None
            problem = problems.unusable_toolkit(machine.name, short_reason(error, public), hint)
            found.append(problem.at(machine.place))
        found += _judged(machine, project.root)
    inventory = Inventory(project.registry)
    for spec, place in _agents(project):
        rules, faults = _declared(project, spec, inventory, place)
        found += faults
        if rules and not faults:
            found += _judged(_of_agent(spec, rules, inventory, place), project.root, kits)
    return found


def _toolkits(project: Project) -> Iterator[tuple[StateMachine, Any]]:
    for item in project.registry.values():
        toolkit = gated_toolset(item.value) if item.kind == "toolset" else None
        if toolkit is not None:
            place = item.place or Location(item.name)
            states = toolkit.unlocked_states
            kit = toolkit.gated
            yield StateMachine(item.name, "toolkit", kit.gates, place, {}, states, functions=kit.functions), toolkit


def _agents(project: Project) -> Iterator[tuple[AgentSpec, Location]]:
    for spec, place in every_agent(project.registry):
        yield spec, place or Location(spec.name)


def _of_agent(spec: AgentSpec, rules: Mapping[str, _Rule], inventory: Inventory, place: Location) -> StateMachine:
    tools = inventory.of(spec)
    free = sum(tool.name not in rules for tool in tools.tools) + len(tools.open)
    gates = {name: gate for name, (gate, _, _) in rules.items()}
    places = {name: at for name, (_, at, _) in rules.items()}
    functions = {name: function for name, (_, _, function) in rules.items()}
    return StateMachine(spec.name, "agent", gates, place, places, free=free, functions=functions)


def _declared(
    project: Project, spec: AgentSpec, inventory: Inventory, place: Location
) -> tuple[dict[str, _Rule], list[Diagnostic]]:
    """An agent's own gates by the tools' names on the wire, each with its place; and those of no tool."""
    rules: dict[str, _Rule] = {}
    for item in spec.tools:
        known = project.registry.get(item) if isinstance(item, str) else None
        value: object = known.value if known is not None else item
        options = options_of(value)
        if options.gated:
            name = item if isinstance(item, str) else options.name or getattr(item, "__name__", "")
            rules[name] = gate_of(options), (known.place if known is not None else None) or place, value
    if not spec.states:
        return rules, []
    tools = inventory.of(spec)
    names = {tool.name: (tool.toolset, tool.tool) for tool in tools.tools}
    faults: list[Diagnostic] = []
    for written, gate in spec.states.items():
        name, at = wire_name(written, names), gate.place or place
        if name not in names and not tools.open:
            known = [tool.name for tool in tools.tools]
            faults.append(problems.gate_of_unknown_tool(written, name, known).at(at))
        rules[name] = gate, at, None
    return rules, faults


def _judged(
    machine: StateMachine, root: Path, kits: Mapping[str, tuple[str, str]] | None = None
) -> Iterator[Diagnostic]:
    """What can't work in a machine; all of these are warnings, since a run may continue from other states."""
    found = analyse(machine.gates, machine.initial)
    what = f"the {machine.kind} `{machine.name}`"
    enabled = sorted(machine.initial.union(*(gate.enables for gate in machine.gates.values())))
    for state, tools in found.unreached.items():
        at = machine.place_of(tools[0], root, state)
        if kits and state in kits:
            yield problems.state_of_toolkit(what, state, tools, *kits[state]).at(at)
        else:
            yield problems.unreachable_state(what, state, tools, enabled).at(at)
    told = {tool for tools in found.unreached.values() for tool in tools}
    for tool in found.never:
        if tool not in told:
            yield problems.never_available(what, tool).at(machine.place_of(tool, root))
    for end in found.dead_ends if not machine.free else ():
        yield problems.dead_end(what, end.path, end.unlocked).at(machine.place)

"""The machine that an agent declares itself: `states:` in its file, and `@tool(required_states=...)` of its functions.

It gives tools that know nothing of states the same gate as a toolkit's have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from llm_do.errors import RunError
from llm_do.linker.checks.machine_checks import gate_of, wire_name
from llm_do.machines.context import Context
from llm_do.machines.dynamic_schema import DynamicSchema
from llm_do.machines.value_sources import BUILTIN_FILTERS, Filter
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.gates import DYNAMIC_MARK, Gate
from llm_do.runtime.tools.gated_tools import ToolGate
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import traits_of
from llm_do.toolkits.machine.machine_gate import MachineGate
from llm_do.toolkits.machine.toolkit_state import ToolkitState
from llm_do.tools import ToolOptions

__all__ = ["DeclaredMachine", "declared_gates"]


class DeclaredMachine:
    """An agent's own machine.

    Args:
        gates: Tools by their names on the wire, with their gates.
        hides: Whether tools that aren't available are hidden.
    """

    def __init__(self, gates: Mapping[str, Gate], *, hides: bool) -> None:
        self.gates = dict(gates)
        self.hides = hides
        self._first = ToolkitState(Context().sealed())

    @property
    def filters(self) -> Mapping[str, Filter]:
        """The built-in filters."""
        return BUILTIN_FILTERS

    def snapshot(self) -> ToolkitState:
        """Nothing unlocked, nothing in the context."""
        return self._first

    def enablers(self, state: str) -> list[str]:
        """The tools that unlock a state."""
        return [name for name, gate in self.gates.items() if state in gate.enables]


def declared_gates(
    spec: AgentSpec, known: Mapping[str, FixedTool], functions: Mapping[str, ToolOptions], *, complete: bool
) -> dict[str, ToolGate]:
    """The gates that an agent declares, by the names its model sees."""
    rules = {name: gate_of(options) for name, options in functions.items()}
    names = {name: _own_name(tool) for name, tool in known.items()}
    for name, gate in spec.states.items():
        rules[wire_name(name, names)] = gate
    dynamic = {
        name: DynamicSchema(tool.tool_def.parameters_json_schema)
        for name, tool in known.items()
        if DYNAMIC_MARK in repr(tool.tool_def.parameters_json_schema)
    }
    for name in dynamic:
        rules.setdefault(name, Gate())
    missing = sorted(rules.keys() - known.keys())
    if complete and missing:
        raise RunError(
            f"agent {spec.name!r} gates the tool {missing[0]!r}, which it doesn't have",
            hint=f"Its tools are {', '.join(sorted(known)) or 'none'}.",
            agent_path=spec.name,
            file=spec.place.file if spec.place else None,
            line=spec.place.line if spec.place else None,
        )
    machine = DeclaredMachine(rules, hides=spec.gate != "refuse")
    return {
        name: MachineGate(
            spec.name,
            machine,
            name,
            gate,
            dynamic=dynamic.get(name),
            validator=cast("Any", known[name].args_validator) if name in dynamic else None,
        )
        for name, gate in rules.items()
    }


def _own_name(tool: FixedTool) -> tuple[str | None, str]:
    traits = traits_of(tool.tool_def.metadata)
    return (traits.toolset, traits.tool) if traits is not None else (None, tool.tool_def.name)

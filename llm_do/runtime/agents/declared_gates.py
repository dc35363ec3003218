"""The gates that an agent declares itself: `states:` in its file, and `@tool(required_states=...)` of its functions.

They form one machine whose context starts empty, and give tools that know nothing of states the same gates as
a toolkit's tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from llm_do.errors import RunError
from llm_do.machines.dynamic_schema import DynamicSchema
from llm_do.machines.machine import Machine
from llm_do.machines.tool_gate import ToolGate
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.gates import DYNAMIC_MARK, Gate, gate_of, wire_name
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import traits_of
from llm_do.tools import ToolOptions

__all__ = ["declared_gates"]


def declared_gates(
    spec: AgentSpec, known: Mapping[str, FixedTool], functions: Mapping[str, ToolOptions], *, complete: bool
) -> dict[str, ToolGate]:
    """Return the gates that an agent declares, by the tool names its model sees."""
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
    machine = Machine(rules)
    return {
        name: ToolGate(
            machine,
            name,
            gate,
            spec.name,
            hides=spec.gate != "refuse",
            dynamic=dynamic.get(name),
            validator=cast("Any", known[name].args_validator) if name in dynamic else None,
        )
        for name, gate in rules.items()
    }


def _own_name(tool: FixedTool) -> tuple[str | None, str]:
    traits = traits_of(tool.tool_def.metadata)
    return (traits.toolset, traits.tool) if traits is not None else (None, tool.tool_def.name)

"""Diagrams of state machines, whose boxes are tools: as text, for Markdown (Mermaid), and for Graphviz.

The machines of a project, as the data that is drawn, come from `llm_do.linker.checks.machine_checks`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from llm_do.project.gates import Gate
from llm_do.text.sanitizer import escape_controls

__all__ = ["Form", "draw", "draw_data"]

Form: TypeAlias = Literal["text", "mermaid", "dot"]

_WORDS = {
    "requires": "needs",
    "forbids": "not in",
    "needs": "needs in the context",
    "enables": "unlocks",
    "disables": "locks",
}


def draw(gates: Mapping[str, Gate], form: Form = "text", *, initial: Iterable[str] = (), name: str = "") -> str:
    """Draw a state machine.

    Example:
        >>> print(draw({"test": Gate(enables=("tested",)), "push": Gate(requires=("tested",))}), end="")
        test   unlocks tested
        push   needs tested
    """
    shown = {
        escape_controls(tool): Gate.from_dict(
            {key: map(escape_controls, states) for key, states in gate.to_dict().items()}
        )
        for tool, gate in gates.items()
    }
    return _DRAWINGS[form](shown, sorted(map(escape_controls, initial)), escape_controls(name))


def draw_data(data: Iterable[Mapping[str, Any]], form: Form = "text") -> str:
    """Draw the data of machines, one diagram each."""
    diagrams: list[str] = []
    for each in data:
        gates = {name: Gate.from_dict(gate) for name, gate in each["gates"].items()}
        diagrams.append(draw(gates, form, initial=each["initial"], name=f"{each['kind']} {each['name']}"))
    return "\n".join(diagrams) or "no states\n"


def _text(gates: Mapping[str, Gate], initial: list[str], name: str) -> str:
    width = max((len(tool) for tool in gates), default=0)
    lines = [f"{name}:"] if name else []
    if initial:
        lines.append(f"{'':{width}}   in the beginning: {', '.join(initial)}")
    for tool, gate in gates.items():
        parts = [f"{_WORDS[key]} {', '.join(states)}" for key, states in gate.to_dict().items() if states]
        lines.append(f"{tool:{width}}   {'; '.join(parts) or 'always'}")
    return "".join(f"{line}\n" for line in lines)


def _edges(gates: Mapping[str, Gate]) -> Iterable[tuple[str, str, str]]:
    """Kind of edge, tool and state."""
    for tool, gate in gates.items():
        for key, states in gate.to_dict().items():
            if key != "needs":
                yield from ((key, tool, state) for state in states)


def _states(gates: Mapping[str, Gate], initial: list[str]) -> list[str]:
    return list(dict.fromkeys([*initial, *(state for _, _, state in _edges(gates))]))


def _mermaid(gates: Mapping[str, Gate], initial: list[str], name: str) -> str:
    tools = {tool: f"t{index}" for index, tool in enumerate(gates)}
    states = {state: f"s{index}" for index, state in enumerate(_states(gates, initial))}
    lines = ["flowchart LR"]
    lines += [f"  {mark}[{_mermaid_text(tool)}]" for tool, mark in tools.items()]
    lines += [f"  {mark}(({_mermaid_text(state)}))" for state, mark in states.items()]
    arrows: Mapping[str, Callable[[str, str], str]] = {
        "requires": lambda tool, state: f"{state} --> {tool}",
        "forbids": lambda tool, state: f"{state} -. not .-x {tool}",
        "enables": lambda tool, state: f"{tool} ==> {state}",
        "disables": lambda tool, state: f"{tool} -. locks .-> {state}",
    }
    lines += [f"  {arrows[key](tools[tool], states[state])}" for key, tool, state in _edges(gates)]
    if name:
        lines.insert(0, f"---\ntitle: {_quote(name)}\n---")
    return "\n".join(lines) + "\n"


def _dot(gates: Mapping[str, Gate], initial: list[str], name: str) -> str:
    lines = [f"digraph {_quote(name or 'states')} {{", "  rankdir=LR"]
    lines += [f"  {_quote('tool ' + tool)} [shape=box, label={_quote(tool)}]" for tool in gates]
    for state in _states(gates, initial):
        bold = ", penwidth=2" if state in initial else ""
        lines.append(f"  {_quote('state ' + state)} [shape=ellipse, label={_quote(state)}{bold}]")
    styles = {
        "requires": "",
        "forbids": ' [style=dotted, arrowhead=tee, label="not"]',
        "enables": " [style=bold]",
        "disables": ' [style=dashed, label="locks"]',
    }
    for key, tool, state in _edges(gates):
        ends = [_quote(f"state {state}"), _quote(f"tool {tool}")]
        if key in ("enables", "disables"):
            ends.reverse()
        lines.append(f"  {' -> '.join(ends)}{styles[key]}")
    return "\n".join([*lines, "}"]) + "\n"


def _mermaid_text(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_DRAWINGS: Mapping[str, Callable[[Mapping[str, Gate], list[str], str], str]] = {
    "text": _text,
    "mermaid": _mermaid,
    "dot": _dot,
}

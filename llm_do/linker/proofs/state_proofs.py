"""Prove that a tool is called only after a state was reached, or after another tool has succeeded.

Gates are what keeps a tool back: those of an agent's `states`, of `@tool` and of toolkits. A call by the project's code
passes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from llm_do._startup.frozen import frozen
from llm_do.linker.proofs.assertion_proofs import Proof, Prover, Step, is_called
from llm_do.linker.proofs.call_graph import ANYTHING
from llm_do.linker.proofs.chain_policy import Place
from llm_do.policy.assertions import OnlyAfter
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.gates import MOST_SITUATIONS, Gate, GatedToolset, gate_of, wire_name
from llm_do.project.registry import Registered
from llm_do.tools import options_of

__all__ = ["known_states", "machines_of", "prove_order"]


@frozen
class AgentMachine:
    """The gates of an agent's tools by their names on the wire, and the states that are unlocked in the beginning."""

    gates: Mapping[str, Gate]
    initial: frozenset[str] = frozenset()


def machines_of(spec: AgentSpec, registry: Mapping[str, Registered], tools: Mapping[str, tuple[str | None, str]]):
    """Return an agent's machines: its own, then those of the toolkits that it lists."""
    own: dict[str, Gate] = {}
    for item in spec.tools:
        found = registry.get(item) if isinstance(item, str) else None
        options = options_of(found.value if found is not None else item)
        if options.gated:
            name = item if isinstance(item, str) else options.name or getattr(item, "__name__", "")
            own[name] = gate_of(options)
    own |= {wire_name(name, tools): gate for name, gate in spec.states.items()}
    machines = [AgentMachine(own)] if own else []
    for item in spec.toolsets:
        ref = item if isinstance(item, ToolsetRef) else ToolsetRef(item) if isinstance(item, str) else None
        found = registry.get(ref.name) if ref is not None and ref.value is None else None
        value: object = found.value if found is not None else ref.value if ref is not None else item
        if isinstance(value, GatedToolset):
            prefix = f"{ref.prefix}_" if ref is not None and ref.prefix else ""
            gates = {f"{prefix}{name}": gate for name, gate in value.gated.gates.items()}
            machines.append(AgentMachine(gates, value.gated.unlocked))
    return machines


def known_states(machines: Sequence[AgentMachine]) -> list[str]:
    """Return every state that machines mention, and the tools that they gate."""
    states: dict[str, None] = {}
    for machine in machines:
        states |= dict.fromkeys(sorted(machine.initial))
        for name, gate in machine.gates.items():
            states |= dict.fromkeys((*gate.requires, *gate.forbids, *gate.enables, *gate.disables, name))
    return list(states)


def prove_order(prover: Prover, assertion: OnlyAfter) -> Proof:
    """Prove that no call of the tool happens before the state was reached, or the other tool has succeeded."""
    unsure: Proof | None = None
    concerned = False
    for place, steps, why in prover.places():
        for found, reason in _at_place(prover, assertion, place):
            concerned = True
            chain = (*steps, *found)
            if not reason and not why and found:
                return Proof(assertion.text, "broken", chain)
            if reason or found:
                unsure = unsure or Proof(assertion.text, "unproved", chain, why or reason)
    return unsure or Proof(assertion.text, "holds", idle=not concerned)


def _at_place(prover: Prover, assertion: OnlyAfter, place: Place) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield, for each way to call the tool at a place, the steps that call it too early, and why that isn't sure."""
    pattern, node = assertion.target.pattern, place.node
    for edge in prover.graph.edges(node):
        if edge.target != ANYTHING and edge.tool is None and is_called(assertion.target, edge.target):
            note = (
                f"{edge.place.file}:{edge.place.line}, without a gate" if edge.place is not None else "without a gate"
            )
            yield (Step(str(node), edge.how, str(edge.target), note),), ""
    spec = prover.graph.spec(node)
    if pattern is None or spec is None:
        return
    tools = prover.graph.tools(node).tools
    machines = machines_of(
        spec, prover.graph.project.registry, {tool.name: (tool.toolset, tool.tool) for tool in tools}
    )
    for tool in prover.policy.available(node):
        for verdict in prover.policy.judge(pattern, tool, place):
            if verdict.possible != "deny":
                yield _too_early(str(node), tool.name, verdict.call, assertion.state, machines)
    origin = prover.policy.hidden_toolset(place, pattern, ("allow", "ask"))
    if origin is not None and not any(assertion.state in gate.requires for gate in _gates_named(machines, assertion)):
        reason = f"the tools of {origin.name} are only known in a run"
        yield (Step(str(node), "has tools of", origin.name),), reason


def _gates_named(machines: Sequence[AgentMachine], assertion: OnlyAfter) -> Iterator[Gate]:
    """Yield the gates of tools that the assertion names, for tools that aren't known yet."""
    for machine in machines:
        for name, gate in machine.gates.items():
            if assertion.target.pattern is not None and assertion.target.pattern.names_tool(name):
                yield gate


def _too_early(
    agent: str, tool: str, call: str, state: str, machines: Sequence[AgentMachine]
) -> tuple[tuple[Step, ...], str]:
    """Return the calls that lead to a call of the tool before the state was reached, and why that isn't sure."""
    gating = [machine for machine in machines if tool in machine.gates]
    shortest: tuple[Step, ...] = (Step(agent, "calls", call, "its gate doesn't require it" if gating else "no gate"),)
    reason = ""
    for machine in gating:
        if state in machine.initial:
            shortest = (Step(agent, "calls", call, f"{state} is unlocked from the beginning"),)
            continue
        path, complete = _path_without(machine, tool, state)
        if path is None and complete:
            return (), ""
        if not complete:
            reason = f"the gates of {agent} have too many situations"
            continue
        note = f"before {state}" if path else "available from the beginning"
        shortest = (*(Step(agent, "calls", name) for name in path or ()), Step(agent, "calls", call, note))
    if len(gating) > 1:
        reason = reason or f"{tool} has gates of several toolkits"
    return shortest, reason


def _path_without(machine: AgentMachine, tool: str, state: str) -> tuple[tuple[str, ...] | None, bool]:
    """Return the shortest path to a call of the tool on which the state is never reached, and whether all were tried.

    A tool that has the state's name counts as the state, once it has succeeded.
    """
    paths: dict[frozenset[str], tuple[str, ...]] = {machine.initial: ()}
    waiting = [machine.initial]
    for unlocked in waiting:
        if machine.gates[tool].opens(unlocked):
            return paths[unlocked], True
        for name, gate in machine.gates.items():
            if name == state or not gate.opens(unlocked):
                continue
            after = gate.after(unlocked)
            if state in gate.enables or after in paths:
                continue
            if len(paths) >= MOST_SITUATIONS:
                return None, False
            paths[after] = (*paths[unlocked], name)
            waiting.append(after)
    return None, True

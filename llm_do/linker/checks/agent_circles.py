"""Find agents that have each other as tools, so that their models can call each other without end.

Handoffs are left out: they replace the agent in control, and have a limit of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping

from llm_do.diagnostics.codes.tools import circular_agents
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import Registered

__all__ = ["find_circles"]


def find_circles(registered: Mapping[str, Registered], unreachable: Container[Location | None]) -> list[Diagnostic]:
    """Warn about each group of agents that can call each other, once, with its shortest circle.

    What nothing reaches has a warning of its own: its agents' places are `unreachable`.
    """
    callers = {name: item for name, item in registered.items() if item.kind in ("agent", "flow")}
    calls = {name: [each for each in _calls(item.value) if each in callers] for name, item in callers.items()}
    found: list[Diagnostic] = []
    lost = [name for name, item in callers.items() if item.place in unreachable]
    seen = set[str]().union(*(_reached(name, calls) for name in lost))
    for name in calls:
        if name in seen or callers[name].kind != "agent":
            continue
        circle = _shortest_circle(name, calls)
        if circle:
            seen |= _group(name, calls)
            found.append(circular_agents(circle).at(callers[name].place or Location("")))
    return found


def _shortest_circle(start: str, calls: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from a caller back to itself, empty if there is none."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for called in calls[name]:
            if called == start:
                circle = [start]
                while name != start:
                    circle.append(name)
                    name = came_from[name]
                return [start, *reversed(circle[1:]), start]
            if called not in came_from:
                came_from[called] = name
                waiting.append(called)
    return []


def _group(name: str, calls: Mapping[str, list[str]]) -> set[str]:
    """Every caller that can reach `name` and be reached from it."""
    back: dict[str, list[str]] = {each: [] for each in calls}
    for caller, called in calls.items():
        for each in called:
            back[each].append(caller)
    return _reached(name, calls) & _reached(name, back)


def _reached(start: str, calls: Mapping[str, list[str]]) -> set[str]:
    seen = {start}
    waiting = [start]
    while waiting:
        for called in calls[waiting.pop()]:
            if called not in seen:
                seen.add(called)
                waiting.append(called)
    return seen


def _calls(caller: object) -> Iterator[str]:
    """The names of the agents and flows that an agent's model may call, or that a flow runs."""
    if isinstance(caller, FlowSpec):
        yield from caller.names()
    elif isinstance(caller, AgentSpec):
        for item in caller.toolsets:
            if isinstance(item, str):
                yield item
            elif isinstance(item, ToolsetRef | AgentSpec | FlowSpec):
                yield item.name

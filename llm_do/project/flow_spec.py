"""`FlowSpec`: what a flow declares, in the manifest or in code; and what can be said of it without running it.

Reading expressions is `llm_do.formats.syntax.flow_expression`, checking flows `llm_do.linker.checks.flow_checks`,
running them `llm_do.flows`. Nothing here imports PydanticAI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.syntax.flow_expression import (
    FlowTree,
    Parallel,
    Reference,
    Serial,
    format_flow,
    names_in,
    series_of,
)
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.functions import input_model_of, takes_context
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.project.registry import Registered

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "Aggregate",
    "FlowMode",
    "FlowSpec",
    "StepOutline",
    "as_member",
    "callers_by_name",
    "every_agent",
    "every_caller",
    "handoff_names",
    "step_outlines",
]

FlowMode = Literal["workflow", "handoff", "team", "plan"]

Aggregate: TypeAlias = "Callable[[list[Any]], Any | Awaitable[Any]]"
"""Makes one output of the outputs of parallel members, given in declared order."""


@dataclass(frozen=True, eq=False)
class FlowSpec:
    """A flow's declaration: stateless, shared by all its runs.

    Args:
        name: The name it is called by.
        mode: How its members work together.
        agents: Names of the members in declared order; the first one starts (handoff) or leads (team).
        tree: The steps of a workflow; None takes the members one after the other.
        members: What names stand for that code has given an object; all others are registered names.
        separator: Put between the outputs of parallel members.
        aggregate: Makes one output of them instead.
        on_error: Whether a failing parallel member cancels the others, or they go on.
        max_concurrency: Parallel members that run at once; None is no limit.
        max_handoffs: Most handoffs in one run.
        description: Shown to models when the flow is a tool.
        place: Where it is declared, for messages.

    Example:
        >>> flow = FlowSpec("article", agents=("researcher", "writer"))
        >>> [step.name for step in names_in(flow.steps)]
        ['researcher', 'writer']
    """

    name: str
    mode: FlowMode = "workflow"
    agents: tuple[str, ...] = ()
    tree: FlowTree | None = None
    members: Mapping[str, Any] = field(default_factory=dict[str, Any])
    separator: str = "\n\n"
    aggregate: Aggregate | None = None
    on_error: Literal["cancel", "collect"] = "cancel"
    max_concurrency: int | None = None
    max_handoffs: int = 10
    description: str | None = None
    place: Location | None = None

    @property
    def steps(self) -> FlowTree:
        """The tree: of a workflow its steps; of any other mode its members in order."""
        return self.tree if self.tree is not None else series_of(self.agents)

    def names(self) -> tuple[str, ...]:
        """Every name it refers to, each once, in declared order."""
        written = [step.name for step in names_in(self.tree)] if self.tree is not None else []
        return tuple(dict.fromkeys([*written, *self.agents]))

    def input_model(self, registry: Mapping[str, Registered]) -> type[BaseModel]:
        """What the flow takes: what its first step takes. Members side by side that differ take text.

        Args:
            registry: Every name of the project.
        """
        models = list(dict.fromkeys(self._first_models(registry, set())))
        return models[0] if len(models) == 1 else PromptInput

    def _first_models(self, registry: Mapping[str, Registered], seen: set[FlowSpec]) -> Iterator[type[BaseModel]]:
        if self in seen:
            return
        seen.add(self)
        for name in _first(self.steps):
            found = as_member(self, name, registry)
            if found is None:
                continue
            if found.kind == "agent":
                yield found.value.input_model or PromptInput
            elif found.kind == "flow":
                yield from found.value._first_models(registry, seen)
            else:
                yield input_model_of(found.value) if takes_context(found.value) else AnyInput


def as_member(flow: FlowSpec, name: str, registry: Mapping[str, Registered]) -> Registered | None:
    """What a name means in a flow: what code has given it there, else what is registered under it.

    Example:
        >>> flow = FlowSpec("solo", agents=("writer",), members={"writer": AgentSpec("writer")})
        >>> as_member(flow, "writer", {}).kind
        'agent'
    """
    value = flow.members.get(name)
    if value is None:
        found = registry.get(name)
        return found if found is not None and found.kind != "toolset" else None
    if isinstance(value, AgentSpec):
        return Registered(name, "agent", value, value.place)
    return Registered(name, "flow" if isinstance(value, FlowSpec) else "tool", value)


def every_agent(names: Mapping[str, Registered]) -> list[tuple[AgentSpec, Location | None]]:
    """Every agent of a project, as `every_caller` finds it.

    Example:
        >>> critic = AgentSpec("critic")
        >>> writer = AgentSpec("writer", toolsets=[AgentSpec("editor", handoffs=[critic])])
        >>> [spec.name for spec, _ in every_agent({"writer": Registered("writer", "agent", writer)})]
        ['writer', 'editor', 'critic']
    """
    return [(item, place) for item, place in every_caller(names) if isinstance(item, AgentSpec)]


def callers_by_name(names: Mapping[str, Registered]) -> dict[str, AgentSpec | FlowSpec]:
    """Every agent and flow of a project by its name, as `every_caller` finds it; the first of those that share one."""
    found: dict[str, AgentSpec | FlowSpec] = {}
    for item, _ in every_caller(names):
        found.setdefault(item.name, item)
    return found


def every_caller(names: Mapping[str, Registered]) -> list[tuple[AgentSpec | FlowSpec, Location | None]]:
    """Every agent and flow of a project: the registered ones, then those that code has given to one of them."""
    found: list[tuple[AgentSpec | FlowSpec, Location | None]] = [
        (item.value, item.place) for item in names.values() if item.kind in ("agent", "flow")
    ]
    seen = {id(item) for item, _ in found}
    for holder, place in found:
        for given in _given(holder):
            if isinstance(given, AgentSpec | FlowSpec) and id(given) not in seen:
                seen.add(id(given))
                found.append((given, given.place or place))
    return found


def _given(holder: AgentSpec | FlowSpec) -> Iterator[object]:
    """What an agent or a flow has as an object, not by its name."""
    yield from holder.members.values() if isinstance(holder, FlowSpec) else (*holder.toolsets, *holder.handoffs)


@frozen
class StepOutline:
    """One part of a flow as a drawing shows it.

    Args:
        kind: `flow` (its `mode` tells which), `serial`, `parallel`, `agent`, `function`, or `unknown`.
        name: The name of a flow, an agent or a function; empty for `serial` and `parallel`.
        mode: A flow's mode.
        expression: A workflow's steps as an expression.
        parts: What is inside, in order. Of a handoff flow its agents, the first one starting; of a team the lead, then
            the workers. Empty for a flow that is inside itself.
        to: For an agent, the names it may hand control to.
    """

    kind: Literal["flow", "serial", "parallel", "agent", "function", "unknown"]
    name: str = ""
    mode: FlowMode | None = None
    expression: str = ""
    parts: tuple[StepOutline, ...] = ()
    to: tuple[str, ...] = ()


def step_outlines(flow: FlowSpec, registry: Mapping[str, Registered]) -> StepOutline:
    """Describe a flow, nested ones included, for whoever draws it.

    Example:
        >>> from llm_do.formats.syntax.flow_expression import parse_flow
        >>> step_outlines(FlowSpec("article", tree=parse_flow("a >> (b | c)")), {}).parts[1].kind
        'parallel'
    """
    return _outline(flow, registry, ())


def _outline(flow: FlowSpec, registry: Mapping[str, Registered], above: tuple[FlowSpec, ...]) -> StepOutline:
    shown = format_flow(flow.steps) if flow.mode == "workflow" else ""
    if flow in above:
        return StepOutline("flow", flow.name, flow.mode, shown)
    inside = _outlined(flow.steps, flow, registry, (*above, flow))
    parts = inside.parts if inside.kind == "serial" else (inside,)
    return StepOutline("flow", flow.name, flow.mode, shown, parts)


def _outlined(
    tree: FlowTree, flow: FlowSpec, registry: Mapping[str, Registered], above: tuple[FlowSpec, ...]
) -> StepOutline:
    if isinstance(tree, Serial):
        return StepOutline("serial", parts=tuple(_outlined(step, flow, registry, above) for step in tree.steps))
    if isinstance(tree, Parallel):
        return StepOutline("parallel", parts=tuple(_outlined(each, flow, registry, above) for each in tree.members))
    found = as_member(flow, tree.name, registry)
    if found is None:
        return StepOutline("unknown", tree.name)
    if found.kind == "flow":
        return _outline(found.value, registry, above)
    if found.kind == "agent":
        return StepOutline("agent", tree.name, to=handoff_names(found.value))
    return StepOutline("function", tree.name)


def handoff_names(spec: AgentSpec) -> tuple[str, ...]:
    """The names of the agents that an agent may hand control to."""
    handoffs: Sequence[str | AgentSpec] = spec.handoffs
    return tuple(item if isinstance(item, str) else item.name for item in handoffs)


def _first(tree: FlowTree) -> Iterator[str]:
    """The names that get the flow's own input."""
    if isinstance(tree, Reference):
        yield tree.name
    elif isinstance(tree, Serial):
        for step in tree.steps[:1]:
            yield from _first(step)
    else:
        for member in tree.members:
            yield from _first(member)

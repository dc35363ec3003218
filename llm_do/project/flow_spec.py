"""`FlowSpec`: the declaration of a flow, in the manifest or in code, and functions that inspect it.

`llm_do.formats.syntax.flow_expression` parses expressions, `llm_do.linker.checks.flow_checks` checks flows and
`llm_do.flows` runs them. Nothing here imports PydanticAI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.syntax.flow_expression import (
    Choice,
    FlowTree,
    ForEach,
    Reference,
    Repeat,
    Serial,
    names_in,
    parts_of,
    series_of,
)
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.functions import input_model_of, takes_context
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.project.tools.toolset_wrappers import find_shown_tools
from llm_do.text.words import closest_match, with_count

if TYPE_CHECKING:
    from pydantic import BaseModel

    from llm_do.policy.pattern import Pattern

__all__ = [
    "Aggregate",
    "FlowMode",
    "FlowSpec",
    "as_member",
    "callers_by_name",
    "every_agent",
    "every_caller",
    "handoff_names",
    "listed_names",
    "step_conditions",
]

FlowMode = Literal["workflow", "handoff", "team", "plan"]

Aggregate: TypeAlias = "Callable[[list[Any]], Any | Awaitable[Any]]"
"""Combines the outputs of parallel members, passed in declared order, into one."""


@dataclass(frozen=True, eq=False)
class FlowSpec:
    """A flow's declaration: stateless, shared by all its runs.

    Args:
        name: The flow's name.
        mode: How its members work together.
        agents: Names of the members in declared order; the first one starts (handoff) or leads (team).
        tree: The steps of a workflow; None runs the members in order.
        members: The objects behind names of members passed in code; all other names are registered ones.
        separator: Joins the outputs of parallel members.
        aggregate: Combines the outputs of parallel members instead of `separator`.
        on_error: Whether a failing parallel member cancels the others, or they finish.
        max_concurrency: The most parallel members running at once; None for no limit.
        max_handoffs: The most handoffs in one run.
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
        """The steps of a workflow; in other modes, the members in order."""
        return self.tree if self.tree is not None else series_of(self.agents)

    def names(self) -> tuple[str, ...]:
        """List every name the flow refers to once, in declared order."""
        steps = [step.name for step in names_in(self.tree)] if self.tree is not None else []
        return tuple(dict.fromkeys([*steps, *self.agents]))

    def input_model(self, registry: Mapping[str, Registered]) -> type[BaseModel]:
        """Return the input model of the flow's first step; parallel members with different models take text.

        Args:
            registry: The project's registry.
        """
        models = list(dict.fromkeys(self._first_models(registry, set())))
        return models[0] if len(models) == 1 else PromptInput

    def _first_models(self, registry: Mapping[str, Registered], seen: set[FlowSpec]) -> Iterator[type[BaseModel]]:
        if self in seen:
            return
        seen.add(self)
        first = _first_step(self.steps)
        if isinstance(first, ForEach) or (isinstance(first, Choice) and first.other is None):
            yield AnyInput  # the step itself reads the input, or passes it on
            return
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
    """Look up a member by name: the object passed in code, else the registered one.

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
    """List every agent of a project, as `every_caller` does.

    Example:
        >>> critic = AgentSpec("critic")
        >>> writer = AgentSpec("writer", toolsets=[AgentSpec("editor", handoffs=[critic])])
        >>> [spec.name for spec, _ in every_agent({"writer": Registered("writer", "agent", writer)})]
        ['writer', 'editor', 'critic']
    """
    return [(item, place) for item, place in every_caller(names) if isinstance(item, AgentSpec)]


def callers_by_name(names: Mapping[str, Registered]) -> dict[str, AgentSpec | FlowSpec]:
    """Map the names of a project's agents and flows to the first one `every_caller` finds."""
    found: dict[str, AgentSpec | FlowSpec] = {}
    for item, _ in every_caller(names):
        found.setdefault(item.name, item)
    return found


def every_caller(names: Mapping[str, Registered]) -> list[tuple[AgentSpec | FlowSpec, Location | None]]:
    """List every agent and flow of a project: the registered ones, then the objects passed to one of them in code."""
    found: list[tuple[AgentSpec | FlowSpec, Location | None]] = [
        (item.value, item.place) for item in names.values() if item.kind in ("agent", "flow")
    ]
    seen = {id(item) for item, _ in found}
    for holder, place in found:
        for item in _references(holder):
            if isinstance(item, _CALLERS) and id(item) not in seen:
                seen.add(id(item))
                found.append((item, item.place or place))
    return found


def creates_agents(names: Mapping[str, Registered]) -> bool:
    """Whether an agent of a project can create others in a run."""
    return any("dynamic_agents" in listed_names(spec) for spec, _ in every_agent(names))


class CallPathNames:
    """The names that call paths may have: of what calls, and of what is between a caller and the entry.

    Args:
        names: The project's names.
        more: Further names of agents, such as those whose files have errors.
    """

    def __init__(self, names: Mapping[str, Registered], more: Iterable[str] = ()) -> None:
        self._callers = {*callers_by_name(names), *names, *more}
        self._between = set(self._callers)
        self._is_open = creates_agents(names)
        self._has_factories = False
        for item, _ in every_caller(names):
            self._between.update(item.members if isinstance(item, FlowSpec) else ())
        for item in names.values():
            # Python code may call a toolset's tool, whose code calls something else.
            if item.kind == "toolset" and not isinstance(item.value, BuiltinToolset):
                shown = find_shown_tools(item.value)
                self._between.update(each.definition.name for each in shown or ())
                self._has_factories = self._has_factories or shown is None

    def is_caller(self, name: str) -> bool:
        """Whether a name is that of an agent, or of a flow or a function that can stand where an agent does."""
        return name in self._callers

    def find_unknown(self, pattern: Pattern) -> str | None:
        """The name in front of a pattern's tool that no call path has where it is; a glob may be meant for any.

        A project with `dynamic_agents` makes agents in a run, so which names there will be isn't known.
        """
        names, agent = pattern.caller_names, pattern.calling_agent
        last = agent.literal if agent is not None else None
        if self._is_open:
            return None
        for name in names[:-1] if names[-1:] == (last,) else names:
            if name not in self._between and not self._may_come(name):
                return name
        return None if last is None or last in self._callers else last

    def _may_come(self, name: str) -> bool:
        """Whether a factory's toolset may have such a tool; one with a typing error isn't expected of any."""
        return self._has_factories and closest_match(name, self._between, spelling_only=True) is None


def listed_names(spec: AgentSpec) -> list[str]:
    """Return every name that an agent lists as a tool, a toolset or a handoff."""
    names = [tool for tool in spec.tools if isinstance(tool, str)]
    for item in (*spec.toolsets, *spec.handoffs):
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, ToolsetRef | AgentSpec | FlowSpec):
            names.append(item.name)
    return names


def _references(holder: AgentSpec | FlowSpec) -> Collection[object]:
    """Return what an agent or flow refers to, by name or as an object."""
    return holder.members.values() if isinstance(holder, FlowSpec) else (*holder.toolsets, *holder.handoffs)


_CALLERS = (AgentSpec, FlowSpec)


def step_conditions(flow: FlowSpec) -> Mapping[str, str]:
    """Say of each conditional or repeated step of a workflow when it runs.

    Example:
        >>> from llm_do.formats.syntax.flow_expression import Choice, Condition
        >>> tree = Choice(Condition("output.ok"), Reference("a"), Reference("b"))
        >>> step_conditions(FlowSpec("f", tree=tree))
        {'a': 'when output.ok', 'b': 'unless output.ok'}
    """
    return {step: ", ".join(said) for step, said in _conditions(flow.steps, ()) if said}


def _conditions(tree: FlowTree, said: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(tree, Reference):
        yield tree.name, said
    elif isinstance(tree, Choice):
        yield from _conditions(tree.then, (*said, f"when {tree.when.text}"))
        if tree.other is not None:
            yield from _conditions(tree.other, (*said, f"unless {tree.when.text}"))
    elif isinstance(tree, ForEach):
        yield from _conditions(tree.body, (*said, f"for each of {tree.items.text}, at most {tree.at_most}"))
    elif isinstance(tree, Repeat):
        yield from _conditions(
            tree.body, (*said, f"until {tree.until.text}, at most {with_count(tree.at_most, 'time')}")
        )
    else:
        for part in parts_of(tree):
            yield from _conditions(part, said)


def handoff_names(spec: AgentSpec) -> tuple[str, ...]:
    """Return the names of the agents that an agent may hand over to."""
    handoffs: Sequence[str | AgentSpec] = spec.handoffs
    return tuple(item if isinstance(item, str) else item.name for item in handoffs)


def _first(tree: FlowTree) -> Iterator[str]:
    """Yield the names of the steps that receive the flow's own input."""
    if isinstance(tree, Reference):
        yield tree.name
    else:
        parts = parts_of(tree)
        for part in parts[:1] if isinstance(tree, Serial) else parts:
            yield from _first(part)


def _first_step(tree: FlowTree) -> FlowTree:
    """Return the first step of a series, or of what a first step repeats."""
    while isinstance(tree, Serial | Repeat) and parts_of(tree):
        tree = parts_of(tree)[0]
    return tree

"""Who can call whom: the agents, flows and functions of a project as nodes, with an edge for each way of calling.

Proofs and bounds follow it. An agent calls by its tools, which policy decides about; flows and code call without it.
Code whose calls can't be read from its source may call anything: it has one edge, to the node `ANYTHING`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.syntax.flow_expression import FlowTree, ForEach, Reference, Repeat, Serial, parts_of
from llm_do.linker.analysis.code_calls import CodeCalls, calls_in, context_parameter
from llm_do.linker.analysis.inventory import AgentTools, Inventory, KnownTool, Origin
from llm_do.linker.analysis.linked_capabilities import provider_tool
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.flow_spec import FlowSpec, as_member, callers_by_name, handoff_names
from llm_do.project.project import Project
from llm_do.project.tools.builtin_toolsets import DYNAMIC_AGENTS, BuiltinToolset

if TYPE_CHECKING:
    from llm_do.project.registry import Registered

__all__ = ["ANYTHING", "GENERATED", "CallGraph", "Edge", "Node"]

GENERATED = "a generated agent"
"""What stands for the name of a generated agent; no rule can spell it."""

_CREATE, _CALL = DYNAMIC_AGENTS["agent_create"], DYNAMIC_AGENTS["agent_call"]


@frozen
class Node:
    """An agent, a flow, a function, the agents that an agent generates, or anything at all.

    Args:
        kind: Which of these.
        name: Its name; of generated agents, the name of the agent that creates them.
        flow: The team that an agent leads here, which gives it further tools.
    """

    kind: Literal["agent", "flow", "function", "generated", "anything"]
    name: str = ""
    flow: str = ""

    def __str__(self) -> str:
        return {"generated": f"an agent that {self.name} generates", "anything": "any name"}.get(self.kind, self.name)


MOST_PATHS = 500
"""The most call paths to examine; in a project with more, the rest look like these."""

ANYTHING = Node("anything")
"""What code may call whose calls can't be read from its source."""


@frozen
class Edge:
    """One way in which a node calls another.

    Args:
        target: What is called.
        how: The verb, for people.
        tool: The tool through which a model calls, which policy decides about; None for a call without policy.
        step: What a flow puts into the call path before the name, such as `2/`.
        moves: Whether the callee takes the caller's place in the call path, as with a handoff.
        place: Where code makes the call.
        times: The most times that a flow makes the call in one run of its own.
    """

    target: Node
    how: str = "calls"
    tool: KnownTool | None = None
    step: str = ""
    moves: bool = False
    place: Location | None = None
    times: int = 1

    def path_after(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the call path of what is called, given the caller's.

        Handoffs inside a handoff flow are numbered; here every one has the number of the first.
        """
        steps = tuple(part for part in self.step.split("/") if part)
        name = GENERATED if self.target.kind == "generated" else self.target.name
        return (*(path[:-1] if self.moves else path), *steps, name)


class CallGraph:
    """The calls of a project; edges are found when they are needed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.inventory = Inventory(project.registry)
        self._callers = callers_by_name(project.registry)
        self._tools: dict[Node, AgentTools] = {}
        self._edges: dict[Node, tuple[Edge, ...]] = {}
        self._code: dict[str, tuple[object, Location | None]] = {}
        self._calls: dict[str, CodeCalls] = {}
        self._providers: set[str] = set()

    @cached_property
    def entry(self) -> Node:
        """What a run starts with."""
        entry = self.project.entry
        if entry.kind == "function" and entry.function is not None:
            self._code[entry.name] = (entry.function, entry.place)
        return Node(entry.kind, entry.name)

    @cached_property
    def named(self) -> tuple[Node, ...]:
        """Every agent, flow and exported function."""
        functions = [Node("function", item.name) for item in self.project.registry.values() if item.kind == "tool"]
        return (*(self._caller(item) for item in self._callers.values()), *functions)

    def spec(self, node: Node) -> AgentSpec | None:
        """Return an agent's declaration; of generated agents, one with everything that they can have."""
        found = self._callers.get(node.name)
        if not isinstance(found, AgentSpec):
            return None
        if node.kind == "agent":
            return found
        if node.kind != "generated":
            return None
        named = [each for each in found.toolsets if isinstance(each, str | ToolsetRef) and not _value(each)]
        gated = bool(found.states)
        tools = [each for each in found.tools if isinstance(each, str)]
        return AgentSpec(GENERATED, tools=[] if gated else tools, toolsets=[] if gated else named)

    def flow(self, node: Node) -> FlowSpec | None:
        """Return a flow's declaration."""
        found = self._callers.get(node.name) if node.kind == "flow" else None
        return found if isinstance(found, FlowSpec) else None

    def tools(self, node: Node) -> AgentTools:
        """Return what an agent's model can call: its own tools, handoffs, delegation, and what the provider runs."""
        if node not in self._tools:
            spec = self.spec(node)
            own = self.inventory.of(spec) if spec is not None else AgentTools(())
            given = self._given(node, spec) if spec is not None else ()
            self._tools[node] = AgentTools((*own.tools, *given), own.open, own.misses)
        return self._tools[node]

    def _given(self, node: Node, spec: AgentSpec) -> Iterator[KnownTool]:
        """Yield the tools that an agent doesn't list as tools."""
        for name in dict.fromkeys(handoff_names(spec)):
            facts = ToolFacts("handoff", ("reason",), "reason")
            yield KnownTool(f"transfer_to_{name}", name, Origin(name, None, 0), facts)
        flow = self._callers.get(node.flow) if node.flow else None
        for name in flow.agents[1:] if isinstance(flow, FlowSpec) else ():
            found = as_member(flow, name, self.project.registry) if isinstance(flow, FlowSpec) else None
            facts = ToolFacts("flow" if found is not None and found.kind == "flow" else "agent", ("task",), "task")
            yield KnownTool(f"delegate_to_{name}", name, Origin(name, None, 0), facts)
        for tool in spec.server_side_tools:
            yield provider_tool(tool)

    def edges(self, node: Node) -> tuple[Edge, ...]:
        """Return the ways in which a node calls others."""
        if node not in self._edges:
            if node.kind == "anything":
                self._edges[node] = tuple(Edge(each) for each in self.named)
            elif node.kind == "flow":
                self._edges[node] = tuple(self._flow_edges(node))
            elif node.kind == "function":
                self._edges[node] = tuple(self._code_edges(self.calls(node)))
            else:
                self._edges[node] = tuple(self._agent_edges(node))
        return self._edges[node]

    def calls(self, node: Node) -> CodeCalls:
        """Return what a function calls, as its source says."""
        if node.name not in self._calls:
            code, place = self._code.get(node.name, (None, None))
            if code is None:
                found = self.project.registry.get(node.name)
                code, place = (found.value, found.place) if found is not None and found.kind == "tool" else (None, None)
            root = self.project.root.resolve()
            first = node.name in self._providers
            self._calls[node.name] = calls_in(code, root, place, first=first) if code is not None else CodeCalls()
        return self._calls[node.name]

    def function_of(self, tool: KnownTool) -> Node | None:
        """Return the node of a tool whose code can call others."""
        if tool.code is None or context_parameter(tool.code) is None:
            return None
        name = tool.tool if tool.toolset is None else f"{tool.toolset}.{tool.tool}"
        self._code.setdefault(name, (tool.code, None))
        return Node("function", name)

    def _code_edges(self, calls: CodeCalls) -> Iterator[Edge]:
        for call in calls.calls:
            found = self.project.registry.get(call.name)
            node = self._node(found) if found is not None else None
            if node is not None:
                yield Edge(node, place=call.place)
        if calls.unknown is not None:
            yield Edge(ANYTHING, "may call", place=calls.unknown)

    def _agent_edges(self, node: Node) -> Iterator[Edge]:
        found = self.tools(node)
        creates = any(tool.facts is _CREATE for tool in found.tools)
        for tool in found.tools:
            if tool.facts is _CALL:
                yield from self._generated_edges(node, tool, creates=creates)
            elif tool.kind == "handoff":
                yield Edge(Node("agent", tool.tool), "hands over to", tool, moves=True)
            elif tool.kind in ("agent", "flow"):
                target = self._member(node, tool)
                if target is not None:
                    yield Edge(target, tool=tool)
            elif (function := self.function_of(tool)) is not None:
                yield Edge(function, tool=tool)
        yield from self._provider_edges(self.spec(node))
        for origin in found.open:
            if not self.is_server(origin):
                yield Edge(ANYTHING, f"has tools of {origin.name}, which may call")

    def _generated_edges(self, node: Node, tool: KnownTool, *, creates: bool) -> Iterator[Edge]:
        """Yield the calls of generated agents: of new ones, and of those that earlier runs left."""
        if self.project.generated_agents_dir is None:
            return
        if creates:
            yield Edge(Node("generated", node.name), "creates and calls", tool)
        for spec in self.project.registry.agents():
            if self.project.is_generated(spec):
                yield Edge(Node("agent", spec.name), tool=tool)

    def _provider_edges(self, spec: AgentSpec | None) -> Iterator[Edge]:
        """Yield the functions that write instructions, which get a context."""
        own = (*spec.context_providers, spec.instructions) if spec is not None else ()
        for provider in (*self.project.context_providers, *own):
            if not isinstance(provider, str) and context_parameter(provider, first=True) is not None:
                name = str(getattr(provider, "__name__", type(provider).__name__))
                self._code.setdefault(name, (provider, None))
                self._providers.add(name)
                yield Edge(Node("function", name), "runs")

    def is_server(self, origin: Origin) -> bool:
        """Whether a toolset whose tools aren't known is an MCP server, which can't call anything of the project."""
        found = self.project.registry.get(origin.name)
        return found is not None and isinstance(found.value, BuiltinToolset)

    def _member(self, node: Node, tool: KnownTool) -> Node | None:
        """Return what a tool that is an agent or a flow calls, or what a team's lead delegates to."""
        flow = self._callers.get(node.flow) if node.flow else None
        if isinstance(flow, FlowSpec) and tool.name == f"delegate_to_{tool.tool}":
            return self._node(as_member(flow, tool.tool, self.project.registry))
        return self._caller(self._callers[tool.tool]) if tool.tool in self._callers else None

    def _flow_edges(self, node: Node) -> Iterator[Edge]:
        flow = self.flow(node)
        if flow is None:
            return
        if flow.mode == "workflow":
            steps: Iterator[tuple[str, str, int]] = _positions(flow.steps, "", 1)
        elif flow.mode == "plan":
            steps = zip(flow.agents, ("1/", "2/1/", "3/"), (1, 1, 1), strict=False)
        else:
            steps = iter([(name, "1/", 1) for name in flow.agents[:1]])
            if flow.mode == "handoff":  # a conversation continues with whoever was in control
                steps = iter([(name, "1/", 1) for name in flow.agents])
        for name, step, times in steps:
            target = self._node(as_member(flow, name, self.project.registry))
            if target is not None:
                if flow.mode == "team":
                    target = Node("agent", target.name, flow.name)
                yield Edge(target, "runs", step=step, times=times)

    def _node(self, found: Registered | None) -> Node | None:
        if found is None or found.kind == "toolset":
            return None
        if found.kind == "tool":
            self._code.setdefault(found.name, (found.value, found.place))
            return Node("function", found.name)
        return Node(found.kind, found.value.name)

    @staticmethod
    def _caller(item: AgentSpec | FlowSpec) -> Node:
        return Node("agent" if isinstance(item, AgentSpec) else "flow", item.name)

    def reachable(self, start: Node) -> Mapping[Node, Edge | None]:
        """Return every node that can be called from one, whatever policy says, each with an edge that leads to it."""
        found: dict[Node, Edge | None] = {start: None}
        waiting = [start]
        for node in waiting:
            for edge in self.edges(node):
                if edge.target not in found:
                    found[edge.target] = edge
                    waiting.append(edge.target)
        return found

    def paths(self, start: Node, deepest: int) -> Iterator[tuple[Edge, ...]]:
        """Yield the ways from a node to the agents and flows that it calls by name, the shortest first.

        No way repeats a name, and there is an empty one to the node itself. Handing over, code and generated agents
        aren't followed: nothing takes their place in a call path that a rule can spell.

        Args:
            start: Where the ways begin.
            deepest: The most names in a call path.
        """
        waiting: deque[tuple[Edge, ...]] = deque([()])
        for _ in range(MOST_PATHS):
            if not waiting:
                return
            way = waiting.popleft()
            yield way
            node = way[-1].target if way else start
            names = {start.name, *(edge.target.name for edge in way)}
            if len(way) + 1 < deepest:
                waiting.extend((*way, edge) for edge in self._named_edges(node) if edge.target.name not in names)

    def _named_edges(self, node: Node) -> Iterator[Edge]:
        """Yield the calls of agents and flows by name, each target once."""
        seen: set[str] = set()
        for edge in self.edges(node):
            own = edge.tool is None or edge.tool.toolset is None
            if edge.target.kind in ("agent", "flow") and own and not edge.moves and edge.target.name not in seen:
                seen.add(edge.target.name)
                yield edge


def _value(item: str | ToolsetRef) -> bool:
    """Whether a toolset is passed as an object, so that it has no name to pass on."""
    return isinstance(item, ToolsetRef) and item.value is not None


def _positions(tree: FlowTree, position: str, times: int) -> Iterator[tuple[str, str, int]]:
    """Yield the steps of a workflow with their positions, as they are in call paths, and how often each may run."""
    series = tree if isinstance(tree, Serial) else Serial((tree,))
    for number, step in enumerate(series.steps, 1):
        yield from _inside(step, f"{position}{number}/", times)


def _inside(tree: FlowTree, position: str, times: int) -> Iterator[tuple[str, str, int]]:
    if isinstance(tree, Reference):
        yield tree.name, position, times
    elif isinstance(tree, Serial):
        yield from _positions(tree, position, times)
    elif isinstance(tree, ForEach | Repeat):  # each time has its number; here every one has that of the first
        yield from _inside(tree.body, f"{position}1/", times * tree.at_most)
    else:
        for part in parts_of(tree):
            yield from _inside(part, position, times)

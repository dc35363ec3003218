"""What policy lets a chain of calls do at a place: which tools an agent has there, and which calls it may make.

Decisions are shared by all places between which rules can't tell, so that a thousand agents take little more time
than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import KnownTool, Origin
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.analysis.permissions import call_of, decide_about, makers_on
from llm_do.linker.proofs.call_graph import GENERATED, CallGraph, Edge, Node
from llm_do.linker.proofs.call_verdicts import Caller, Verdict, judge_calls, names_tool
from llm_do.policy.matcher import applies_to_agent
from llm_do.policy.pattern import Pattern
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Decision, Effect, ToolCallInfo
from llm_do.project.gates import Gate, analyse
from llm_do.text.globs import Glob

__all__ = ["ChainPolicy", "Place"]


@frozen
class Place:
    """Where a chain of calls is: a node and its call path."""

    node: Node
    path: tuple[str, ...]


class ChainPolicy:
    """Policy along the chains of one project's calls."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.project = graph.project
        self._verdicts: dict[object, Verdict | None] = {}
        self._effects: dict[object, Effect] = {}
        self._closed: dict[Node, frozenset[str]] = {}
        self._tools: dict[int, tuple[KnownTool, int]] = {}
        self._numbers: dict[object, int] = {}
        self._who: dict[Caller, object] = {}
        rules = [rule.pattern for rule in self.project.policy.rules]
        self._by_agent = [each for each in rules if each.agent is not None or each.agent_path is not None]
        self._by_path = [each.agent_path.segments for each in rules if each.agent_path is not None]

    def path_key(self, path: tuple[str, ...]) -> tuple[object, ...]:
        """Return what rules can tell about a call path, and about where a handoff from it leads."""
        return tuple(
            _places_in(segments, part, fold=fold)
            for segments in self._by_path
            for part in (path, path[:-1])
            for fold in (False, True)
        )

    def available(self, node: Node) -> Iterator[KnownTool]:
        """Yield an agent's tools except those whose gate can never open."""
        closed = self._never_open(node)
        return (tool for tool in self.graph.tools(node).tools if tool.name not in closed)

    def _never_open(self, node: Node) -> frozenset[str]:
        if node not in self._closed:
            spec = self.graph.spec(node) if node.kind == "agent" else None
            gates: dict[str, Gate] = dict(spec.states) if spec is not None else {}
            self._closed[node] = frozenset(analyse(gates).never) if gates else frozenset()
        return self._closed[node]

    def judge(self, pattern: Pattern, tool: KnownTool, place: Place) -> Iterator[Verdict]:
        """Yield what policy says about the calls that a pattern matches, for each caller that rules may see."""
        if pattern.action is None and not names_tool(pattern, tool):
            return
        for caller in self._callers(place):
            named = pattern.agent is not None or pattern.agent_path is not None
            key = (pattern.text, (caller.agent, caller.path) if named else "", *self._key(tool, caller))
            if key not in self._verdicts:
                self._verdicts[key] = judge_calls(pattern, tool, caller, self.project)
            if (found := self._verdicts[key]) is not None:
                yield found

    def passes(self, place: Place, edge: Edge) -> Effect:
        """Return what policy says about the ordinary call of an edge; code and flows need no permission."""
        if edge.tool is None:
            return "allow"
        if edge.tool.name in self._never_open(place.node):
            return "deny"
        effects: list[Effect] = []
        for caller in self._callers(place):
            key = self._key(edge.tool, caller)
            if key not in self._effects:
                call = call_of(edge.tool, caller.path, agent=caller.agent, makers=caller.makers)
                decision = decide_about(edge.tool, call, self.project.policy, self.project.settings)
                self._effects[key] = self._answered(decision)
            effects.append(self._effects[key])
        return min(effects, key=("allow", "ask", "deny").index)

    def _answered(self, decision: Decision) -> Effect:
        mode = self.project.settings.approval_mode
        if decision.effect != "ask" or mode == "prompt":
            return decision.effect
        return "deny" if mode == "reject_all" else "allow"

    def _callers(self, place: Place) -> Iterator[Caller]:
        """Yield whom rules may take the caller for: a generated agent may have any name that isn't taken."""
        path = "/".join(place.path)
        if place.node.kind != "generated":
            yield Caller(place.node.name, path, makers_on(place.path, self.project))
            return
        makers = (place.node.name,)
        yield Caller(GENERATED, path, makers)
        for name in self._free_names:
            yield Caller(name, "/".join((*place.path[:-1], name)), makers)

    @cached_property
    def _free_names(self) -> tuple[str, ...]:
        """The agents that rules name and that don't exist, so that a generated agent may get their names."""
        names: set[str] = set()
        for pattern in self._by_agent:
            last = pattern.agent_path.segments[-1:] if pattern.agent_path is not None else ()
            names.update(each.literal for each in (pattern.agent, *last) if each is not None and each.literal)
        return tuple(sorted(names - self.project.registry.keys()))

    def _key(self, tool: KnownTool, caller: Caller) -> tuple[object, ...]:
        """Return what a decision about a tool depends on."""
        if id(tool) not in self._tools:
            ref = tool.origin.ref
            config = (ref.name, repr(sorted(ref.options.items()))) if ref is not None else None
            named = (tool.name, tool.tool, tool.toolset, tool.approval, tool.facts, id(tool.schema), config)
            self._tools[id(tool)] = tool, self._numbers.setdefault(named, len(self._numbers))
        return (self._tools[id(tool)][1], self._number_of(caller))

    def _number_of(self, caller: Caller) -> object:
        """Return what rules can tell about a caller."""
        if not self._by_agent:
            return None
        if caller not in self._who:
            probe = ToolCallInfo("", {}, agent=caller.agent, path=caller.path, makers=caller.makers)
            exact = tuple(each.agent is not None and each.agent.matches(caller.agent) for each in self._by_agent)
            path = caller.path if self._by_path else ""
            self._who[caller] = (tuple(applies_to_agent(each, probe) for each in self._by_agent), exact, path)
        return (self._who[caller], caller.makers)

    def hidden_toolset(self, place: Place, pattern: Pattern, limit: Sequence[Effect]) -> Origin | None:
        """Return a toolset whose tools are only known in a run, if it may have one whose calls a pattern matches.

        Policy has to let the call through with one of the effects in `limit`.
        """
        found = self.project.registry.get(pattern.tool.literal or "")
        if found is not None and found.kind in ("agent", "flow", "tool"):
            return None  # that is what the name means
        tools = self.graph.tools(place.node)
        known = [tool.name for tool in tools.tools]
        for origin in tools.open:
            named = pattern.tool.literal if pattern.action is None else None
            if named is not None and named != origin.name:
                if not may_be_listed(named, known, [origin], self.project.registry, own=True):
                    continue
            elif (
                pattern.action is None
                and not pattern.tool.matches(origin.name)
                and not self._may_share(pattern, origin)
            ):
                continue
            if self._lets_through(place, origin, named if named != origin.name else None, limit):
                return origin
        return None

    @staticmethod
    def _may_share(pattern: Pattern, origin: Origin) -> bool:
        """Whether a pattern with wildcards may match the name of a tool of a toolset."""
        prefix = origin.ref.prefix if origin.ref is not None and origin.ref.prefix is not None else origin.name
        own = pattern.tool.prefix
        return own.startswith(prefix) or prefix.startswith(own)

    def _lets_through(self, place: Place, origin: Origin, name: str | None, limit: Sequence[Effect]) -> bool:
        if self.project.policy.function is not None:
            return True
        server = self.graph.is_server(origin)
        tool = KnownTool(
            name or f"{origin.name}_?", name or "?", origin, ToolFacts("mcp" if server else "toolset"), origin.name
        )
        # Where the name isn't known, a rule that allows some of the toolset's tools may allow this one.
        lenient = name is None and any(
            each.pattern.action is not None or self._may_share(each.pattern, origin)
            for each in self.project.policy.allows
        )
        for caller in self._callers(place):
            call = call_of(tool, caller.path, agent=caller.agent, makers=caller.makers)
            decision = decide_about(tool, call, self.project.policy, self.project.settings)
            effect = self._answered(decision)
            # A factory's tools may declare that they need no approval.
            if effect in limit or (effect == "ask" and (lenient or not server)):
                return True
        return False


def _places_in(segments: Sequence[Glob | None], path: Sequence[str], *, fold: bool) -> frozenset[int]:
    """Return the places in a pattern's segments that are reached after a path."""
    places = {0}
    for part in path:
        after: set[int] = set()
        for place in _with_empty(segments, places):
            segment = segments[place] if place < len(segments) else None
            if segment is not None:
                after |= {place + 1} if segment.matches(part, fold=fold) else set()
            elif place < len(segments) or fold:
                after.add(place)
        places = after
    return frozenset(_with_empty(segments, places))


def _with_empty(segments: Sequence[Glob | None], places: set[int]) -> set[int]:
    found = set(places)
    for start in places:
        place = start
        while place < len(segments) and segments[place] is None:
            place += 1
            found.add(place)
    return found

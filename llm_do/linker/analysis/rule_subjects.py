"""What rules are about: the agents that one names, and the tools of theirs that it speaks of.

A project may have thousands of both. So agents whose tools are alike are looked at once, and a pattern is compared only
with names that have its characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from llm_do.linker.analysis.inventory import KnownTool, Origin
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.sources.name_index import NameIndex
from llm_do.policy.call_effects import concerns
from llm_do.policy.pattern import Pattern
from llm_do.policy.rules import Rule
from llm_do.project.flow_spec import CallPathNames, every_agent
from llm_do.project.registry import Registered

__all__ = ["RuleAgents", "Subjects", "speaks_of", "unknown_caller"]


class RuleAgents:
    """The agents that a rule names, and their tools, of which those that rules can't tell apart are there once.

    Args:
        names: The agents.
        subjects: The tools of each agent.
    """

    def __init__(self, names: Sequence[str], subjects: Subjects) -> None:
        self.names = names
        self.are_open = any(name in subjects.open for name in names)
        """Whether one of them has tools that are known only at run time."""
        self._subjects = subjects

    @cached_property
    def tool_names(self) -> Sequence[str]:
        """The names of their tools, sorted."""
        return sorted({tool.name for tool in self._tools})

    def tools(self, rule: Rule) -> Sequence[KnownTool]:
        """Return the tools that a rule speaks of, in listed order."""
        pattern = rule.pattern
        if pattern.action is not None:
            return [tool for tool in self._tools if concerns(pattern, tool.facts)]
        found = self._by_name.find(pattern.tool)
        if rule.effect != "allow":
            found = sorted({*found, *self._by_own_name.find(pattern.tool)})
        return [self._tools[place] for place in found]

    def may_have(self, rule: Rule, registry: Mapping[str, Registered]) -> bool:
        """Whether a rule may be about a tool that is known only at run time."""
        if not self.are_open:
            return False
        literal = rule.pattern.tool.literal
        if self._has_any_tool or literal is None or rule.pattern.action is not None:
            return True
        return may_be_listed(literal, self.tool_names, self._origins, registry, own=rule.effect != "allow")

    @property
    def every_tool(self) -> Sequence[KnownTool]:
        """All of their tools that are known before a run."""
        return self._tools

    @cached_property
    def _tools(self) -> Sequence[KnownTool]:
        every = (tool for name in self.names for tool in self._subjects.listed[name])
        return list({(tool.name, tool.tool, tool.facts): tool for tool in every}.values())

    @cached_property
    def _by_name(self) -> NameIndex:
        return NameIndex([tool.name for tool in self._tools])

    @cached_property
    def _by_own_name(self) -> NameIndex:
        return NameIndex([tool.tool for tool in self._tools])

    @cached_property
    def _open_origins(self) -> Sequence[Sequence[Origin]]:
        return [self._subjects.origins.get(name, ()) for name in self.names if name in self._subjects.open]

    @cached_property
    def _has_any_tool(self) -> bool:
        """Whether nothing is known of what one of them may have."""
        return not all(self._open_origins)

    @cached_property
    def _origins(self) -> Sequence[Origin]:
        """What lists the tools that are known only at run time."""
        return list({_listing(each): each for origins in self._open_origins for each in origins}.values())


class Subjects:
    """The tools of each agent that rules may name.

    Args:
        listed: The tools.
        open: Agents with tools that are known only at run time.
        origins: The toolsets that these come from; an open agent without any may have any tool.
    """

    def __init__(
        self,
        listed: Mapping[str, Sequence[KnownTool]],
        open: Iterable[str] = (),
        origins: Mapping[str, Sequence[Origin]] | None = None,
    ) -> None:
        self.listed = listed
        self.open = frozenset(open)
        self.origins = origins or {}
        self._names = tuple(listed)
        self._index = NameIndex(self._names)
        self._agents: dict[tuple[int, ...] | None, RuleAgents] = {}

    def agents(self, rule: Rule) -> RuleAgents:
        """Return the agents that a rule names; every one if it names none."""
        glob = rule.pattern.calling_agent
        found = None if glob is None else tuple(self._index.find(glob))
        known = self._agents.get(found)
        if known is None:
            names = self._names if found is None else [self._names[place] for place in found]
            known = self._agents[found] = RuleAgents(names, self)
        return known


def unknown_caller(pattern: Pattern, registry: Mapping[str, Registered]) -> str | None:
    """What a pattern names in front of its tool, if the project has no agent of that name, or none on such a path."""
    unknown, agent = CallPathNames(registry).find_unknown(pattern), pattern.calling_agent
    if unknown is not None or agent is None or any(agent.matches(spec.name) for spec, _ in every_agent(registry)):
        return unknown
    return agent.literal or pattern.text.partition(":")[0]


def speaks_of(rule: Rule, tool: KnownTool) -> bool:
    """Whether a rule's tool part matches; one that denies or asks also matches a tool's own name."""
    if rule.pattern.action is not None:
        return concerns(rule.pattern, tool.facts)
    return rule.pattern.names_tool(tool.name) or (rule.effect != "allow" and rule.pattern.names_tool(tool.tool))


def _listing(origin: Origin) -> tuple[object, ...]:
    """What tells apart which tools two toolsets may list."""
    ref = origin.ref
    return () if ref is None else (ref.name, ref.prefix, tuple(ref.include), tuple(ref.exclude))

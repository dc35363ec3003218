"""Effective permissions: what each agent may do at each call path, computed by the function that decides at run time.

No tool is called: a call without arguments represents an ordinary one, and rules that constrain arguments are listed
next to its decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import AgentTools, KnownTool
from llm_do.policy.arguments import resolve_by_text
from llm_do.policy.call_effects import concerns
from llm_do.policy.decision import decide
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import CALLS, Decision, Effect, ToolCallInfo
from llm_do.project.project import carried_approval

if TYPE_CHECKING:
    from llm_do.project.project import Project, RuntimeSettings

__all__ = [
    "Escalation",
    "Permission",
    "agents_called",
    "call_of",
    "call_paths",
    "decide_about",
    "find_escalations",
    "makers_on",
    "permission_for",
]

MOST_PATHS = 500
"""The most call paths to examine; in a project with more, the rest look like these."""


@frozen
class Permission:
    """The decision about an ordinary call of one tool by one agent at one call path.

    `rules` may decide otherwise for some arguments; `depends` is set if the toolset decides by the arguments.
    """

    tool: KnownTool
    decision: Decision
    rules: Sequence[Rule] = ()
    depends: bool = False

    @property
    def effect(self) -> Effect:
        """The effect for an ordinary call."""
        return self.decision.effect


@frozen
class Escalation:
    """A tool that an agent may not call freely, but can through another agent at the call path `path`.

    `own` is the decision about the first agent's own call.
    """

    path: str
    tool: str
    own: Decision


def permission_for(
    tool: KnownTool, path: str, policy: Policy, settings: RuntimeSettings, *, agent: str | None = None
) -> Permission:
    """Decide about an ordinary call of a tool."""
    own = agent or path.rpartition("/")[2]
    decision = decide_about(tool, call_of(tool, path, agent=own), policy, settings)
    rules = [
        rule
        for rule in policy.rules
        if (rule.pattern.primary is not None or rule.pattern.named or rule.pattern.action is not None)
        and _applies(rule, tool, own, path)
    ]
    return Permission(tool, decision, rules, tool.facts.decides and decision.source in ("toolset", "default"))


def call_of(
    tool: KnownTool,
    path: str,
    args: Mapping[str, object] | None = None,
    *,
    agent: str,
    makers: tuple[str, ...] = (),
) -> ToolCallInfo:
    """Return a call of a tool as rules see it; paths, commands and hosts are resolved by their text."""
    facts, args = tool.facts, args or {}
    return ToolCallInfo(
        tool.name,
        args,
        agent=agent,
        path=path,
        depth=path.count("/") + 1,
        toolset=tool.toolset,
        tool=tool.tool,
        kind=tool.kind,
        primary=facts.primary,
        resolved=resolve_by_text(facts, args),
        makers=makers,
        reads=tuple(facts.reads),
        writes=tuple(facts.writes),
    )


def makers_on(path: Sequence[str], project: Project) -> tuple[str, ...]:
    """Return who made the agent at the end of a call path, and who made that one, as at run time."""
    makers: list[str] = []
    names = [*path]
    while project.generated_agents_dir is not None and len(names) > 1:
        spec = project.registry.agent(names.pop())
        if spec is None or not project.is_generated(spec):
            break
        makers.append(names[-1])
    return tuple(makers)


def decide_about(
    tool: KnownTool,
    call: ToolCallInfo,
    policy: Policy,
    settings: RuntimeSettings,
    *,
    toolset: Decision | None = None,
    function: Effect | None = None,
) -> Decision:
    """Decide about a call by what is known before a run.

    `toolset` is its toolset's decision about these arguments, where it is known; else it is that for ordinary ones.
    `function` is what the policy function is assumed to say.
    """
    override = settings.agent_approval_overrides.get(tool.tool)
    requires_approval = settings.agent_calls_require_approval
    if override is not None and override.calls_require_approval is not None:
        requires_approval = override.calls_require_approval
    if toolset is None and tool.facts.default is not None:
        toolset = Decision(tool.facts.default, tool.facts.reason)
    return decide(
        call,
        policy,
        metadata=tool.approval or carried_approval(settings, tool.tool, tool.kind),
        toolset=toolset,
        function=function,
        calls_require_approval=tool.kind in CALLS and requires_approval,
        default_reason=tool.facts.reason,
    )


def _applies(rule: Rule, tool: KnownTool, agent: str, path: str) -> bool:
    pattern = rule.pattern
    if pattern.agent is not None and not pattern.agent.matches(agent):
        return False
    if pattern.agent_path is not None and not pattern.agent_path.matches(path.split("/"), restrictive=True):
        return False
    if pattern.action is not None:
        return concerns(pattern, tool.facts)
    return pattern.names_tool(tool.name) or (rule.effect != "allow" and pattern.names_tool(tool.tool))


def agents_called(tools: AgentTools) -> Iterator[KnownTool]:
    """Return the tools of an agent that are agents or flows."""
    return (tool for tool in tools.tools if tool.kind in ("agent", "flow") and tool.toolset is None)


def call_paths(entry: str, tools: Mapping[str, AgentTools], deepest: int) -> Iterator[tuple[str, ...]]:
    """Yield every call path from an agent to the agents it reaches, without repeating an agent, the shortest first."""
    queue: list[tuple[str, ...]] = [(entry,)]
    count = 0
    while queue and count < MOST_PATHS:
        path = queue.pop(0)
        count += 1
        yield path
        if len(path) >= deepest or path[-1] not in tools:
            continue
        queue.extend(
            (*path, tool.tool)
            for tool in agents_called(tools[path[-1]])
            if tool.tool not in path and tool.tool in tools
        )


def find_escalations(
    entry: str, tools: Mapping[str, AgentTools], policy: Policy, settings: RuntimeSettings
) -> Iterator[Escalation]:
    """Find tools that rules restrict for an agent, but that it can use without approval through agents it calls."""
    scoped = [rule for rule in policy.rules if rule.pattern.agent is not None or rule.pattern.agent_path is not None]
    if not scoped:
        return
    reported: set[tuple[str, str, str]] = set()
    for path in call_paths(entry, tools, settings.max_depth):
        if len(path) < 2:
            continue
        for start in range(len(path) - 1):
            if not _is_open(path, start, tools, policy, settings):
                continue
            for tool in tools[path[-1]].tools:
                key = (path[start], path[-1], tool.name)
                if tool.kind in ("agent", "flow") or key in reported:
                    continue
                own = permission_for(tool, "/".join(path[: start + 1]), policy, settings).decision
                if own.source not in ("deny", "ask"):
                    continue
                if permission_for(tool, "/".join(path), policy, settings).effect == "allow":
                    reported.add(key)
                    yield Escalation("/".join(path), tool.name, own)


def _is_open(
    path: Sequence[str], start: int, tools: Mapping[str, AgentTools], policy: Policy, settings: RuntimeSettings
) -> bool:
    """Whether every call along a call path is allowed without approval."""
    for index in range(start, len(path) - 1):
        step = next((tool for tool in agents_called(tools[path[index]]) if tool.tool == path[index + 1]), None)
        if step is None or permission_for(step, "/".join(path[: index + 1]), policy, settings).effect != "allow":
            return False
    return True

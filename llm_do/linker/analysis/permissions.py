"""Effective permissions: what each agent may do at each call path, computed by the function that decides at run time.

No tool is called: a call without arguments represents an ordinary one, and rules that constrain arguments are listed
next to its decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import KnownTool
from llm_do.policy.arguments import attached_paths, resolve_by_text
from llm_do.policy.call_effects import concerns
from llm_do.policy.decision import decide
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import CALLS, Decision, Effect, ToolCallInfo
from llm_do.project.project import carried_approval

if TYPE_CHECKING:
    from llm_do.project.project import Project, RuntimeSettings

__all__ = [
    "Permission",
    "call_of",
    "decide_about",
    "makers_on",
    "permission_for",
]


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


def permission_for(
    tool: KnownTool, path: str, policy: Policy, settings: RuntimeSettings, *, agent: str | None = None
) -> Permission:
    """Decide about an ordinary call of a tool."""
    own = agent or path.rpartition("/")[2]
    call = call_of(tool, path, agent=own)
    about = policy.about(call)
    # Thousands of agents may have the tool, or call the agent that has it.
    caller = (own, path) if about.names_agents else ()
    key = (tool.name, tool.tool, tool.toolset, tool.facts, *_approval(tool, settings), *caller)
    if key not in about.ordinary:
        about.ordinary[key] = decide_about(tool, call, about, settings), _rules_about(tool, own, path, about)
    decision, rules = about.ordinary[key]
    return Permission(tool, decision, rules, tool.facts.decides and decision.source in ("toolset", "default"))


def _rules_about(tool: KnownTool, agent: str, path: str, policy: Policy) -> Sequence[Rule]:
    """The rules that may decide otherwise for some arguments."""
    return [
        rule
        for rule in policy.rules
        if (rule.pattern.primary is not None or rule.pattern.named or rule.pattern.action is not None)
        and _applies(rule, tool, agent, path)
    ]


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
        restrictive=attached_paths(facts, args),
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
    metadata, requires_approval = _approval(tool, settings)
    if toolset is None and tool.facts.default is not None:
        toolset = Decision(tool.facts.default, tool.facts.reason)
    return decide(
        call,
        policy,
        metadata=metadata,
        toolset=toolset,
        function=function,
        calls_require_approval=requires_approval,
        default_reason=tool.facts.reason,
    )


def _approval(tool: KnownTool, settings: RuntimeSettings) -> tuple[Effect | None, bool]:
    """What a tool and the project's settings say about its calls, and whether these say that all need approval."""
    override = settings.agent_approval_overrides.get(tool.tool)
    requires_approval = settings.agent_calls_require_approval
    if override is not None and override.calls_require_approval is not None:
        requires_approval = override.calls_require_approval
    metadata = tool.approval or carried_approval(settings, tool.tool, tool.kind)
    return metadata, tool.kind in CALLS and requires_approval


def _applies(rule: Rule, tool: KnownTool, agent: str, path: str) -> bool:
    pattern = rule.pattern
    if pattern.agent is not None and not pattern.agent.matches(agent):
        return False
    if pattern.agent_path is not None and not pattern.agent_path.matches(path.split("/"), restrictive=True):
        return False
    if pattern.action is not None:
        return concerns(pattern, tool.facts)
    return pattern.names_tool(tool.name) or (rule.effect != "allow" and pattern.names_tool(tool.tool))

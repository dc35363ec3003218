"""The names in rules and gates, compared with an agent's tools when a run first knows all of them.

The linker compares the names of tools that it knows. Those of servers and factories are only known in a run: there a
misspelled gate or denial would silently restrict nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from llm_do.errors import LlmDoError, RunError
from llm_do.policy.rules import Rule, option_rules
from llm_do.project.flow_spec import every_agent
from llm_do.project.tools.builtin_toolsets import BUILTINS
from llm_do.runtime.tools.traits import traits_of
from llm_do.text.words import closest_match, did_you_mean

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition

    from llm_do.runtime.context.built_agent import BuiltAgent
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["check_listed_names"]

_GIVEN = ("transfer_to_", "delegate_to_")


def check_listed_names(ctx: CallContext, tools: Sequence[ToolDefinition]) -> None:
    """Compare the names in rules and gates with an agent's tools, once in a session.

    Raises:
        RunError: A gate, or a rule that denies or asks, names a tool that doesn't exist.
    """
    spec = ctx.frame.config.agent
    approver = ctx.runtime.approver
    if spec is None or spec.name in approver.listed_agents or ctx.run.memory.get("mcp_without"):
        return
    built = ctx.runtime.builder.build(spec)
    if not built.open:
        return
    approver.listed_agents.add(spec.name)
    names = sorted({tool.name for tool in tools})
    place = f"{spec.place.file}:{spec.place.line}" if spec.place is not None else None
    for name in built.declared:
        if name not in names and name not in built.conditional:
            raise _error(ctx, f"agent {spec.name!r} gates the tool {name!r}, which it doesn't have", name, names, place)
    own = {traits.tool for tool in tools if (traits := traits_of(tool.metadata)) is not None}
    rules = [*approver.policy.rules, *option_rules("allow", [each.text for each in approver.options])]
    for rule in rules:
        _check_rule(ctx, rule, built, names, own)


def _check_rule(ctx: CallContext, rule: Rule, built: BuiltAgent, names: Sequence[str], own: Iterable[str]) -> None:
    """Raise for a rule that restricts nothing, warn of one that allows nothing."""
    pattern, agent = rule.pattern, built.spec.name
    name = pattern.tool.literal
    if (
        name is None
        or pattern.action is not None
        or name.startswith(_GIVEN)
        or name in names
        or (rule.effect != "allow" and name in own)
    ):
        return
    scope = pattern.calling_agent
    if scope is not None and not scope.matches(agent):
        return
    # A name that is like one of these tools is a mistake; any other may be that of another agent's tool.
    near = closest_match(name, names, spelling_only=True)
    if name in _other_names(ctx) or (near is None and not (scope is not None and scope.literal == agent)):
        return
    message = f"the rule {rule.text} matches nothing: agent {agent!r} has no tool {name!r}"
    if rule.effect == "allow":
        ctx.warn(f"{message}; {did_you_mean(name, names) or 'it allows nothing'}")
        return
    raise _error(ctx, message, name, names, rule.place)


def _other_names(ctx: CallContext) -> set[str]:
    """The names of all tools of the project that are known without a run."""
    names = {name for tools in BUILTINS.values() for name in tools}
    for spec, _ in every_agent(ctx.runtime.registry):
        try:
            names |= {tool.name for tool in ctx.runtime.builder.build(spec).tools}
        except LlmDoError:  # an agent that can't be built fails when it is called
            continue
    return names


def _error(ctx: CallContext, message: str, name: str, names: Sequence[str], place: str | None) -> RunError:
    file, _, line = (place or "").rpartition(":")
    known = line.isdecimal()
    return RunError(
        message,
        hint=did_you_mean(name, names) or f"Its tools are {', '.join(names) or 'none'}.",
        agent_path=ctx.path,
        file=file if known else None,
        line=int(line) if known else None,
    )

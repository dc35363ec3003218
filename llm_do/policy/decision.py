"""The one function that decides whether a call may be made, and what answers a question without a person.

Pure: policy functions are called, people asked and answers remembered elsewhere; what they said comes in as values.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from llm_do.policy.matcher import PreparedCall, covers, matches, prepare_call
from llm_do.policy.pattern import Pattern
from llm_do.policy.proposals import narrowest_rule, wider_rule
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import Decision, Effect, ToolCallInfo, ToolKind

__all__ = ["Mode", "answer_automatically", "decide", "deny_without_approver"]

Mode = Literal["prompt", "approve_all", "reject_all"]
"""What answers a question that nothing else answered: a person, yes, or no."""

_TRUSTED: Mapping[ToolKind, str] = {
    "agent": "what it does is decided in turn",
    "flow": "what it does is decided in turn",
    "handoff": "what it does is decided in turn",
    "builtin": "it changes nothing outside the run",
}
"""The kinds that are allowed where nothing speaks of them, and why."""


def decide(
    call: ToolCallInfo,
    policy: Policy,
    *,
    metadata: Effect | None = None,
    toolset: Decision | None = None,
    function: Effect | None = None,
    calls_require_approval: bool = False,
    harmless: str = "",
) -> Decision:
    """Decide about a call; the first line of the table that applies decides.

    1. blocked or deny from any source: denied;
    2. ask from a rule or the policy function, or a question that only a person may answer: ask;
    3. allow from a rule or the policy function, or from metadata unless the toolset requires approval: allowed;
    4. ask from metadata, then the toolset's own decision;
    5. the policy's default, else what the tool's kind says.

    Example:
        >>> decide(ToolCallInfo("send", {"to": "ann"}), Policy()).effect
        'ask'
        >>> decide(ToolCallInfo("send", {"to": "ann"}), Policy(), metadata="allow").source
        'metadata'
    """
    seen = prepare_call(call)
    return (
        _denied(seen, policy, metadata, toolset, function)
        or _must_ask(seen, policy, toolset, function)
        or _allowed(seen, policy, None if toolset is not None and toolset.required else metadata, function)
        or _by_tool(call, metadata, toolset)
        or _by_default(call, policy, harmless, calls_require_approval=calls_require_approval)
    )


def answer_automatically(
    decision: Decision,
    *,
    remembered: bool,
    options: Sequence[Pattern],
    mode: Mode,
    call: ToolCallInfo,
    rules: Sequence[Rule] = (),
    place: str | None = None,
) -> Decision | None:
    """Answer a question without a person, if anything but a person may.

    In this order: a remembered answer, `--allow PATTERN`, the mode. A question that only a person may
    answer is answered by none of them, except that `reject_all` still says no.
    """
    if decision.effect != "ask":
        return decision
    if not decision.person_only:
        if remembered:
            reason = f"{call.tool_name} was allowed by an earlier answer" + (f" ({place})" if place else "")
            given = _answered(decision, "allow", "remembered", reason)
            return replace(given, place=place or given.place)
        seen = prepare_call(call)
        granted = _together([rule.pattern for rule in rules], seen)
        if granted:
            used = [rule for rule in rules if any(rule.pattern is one for one in granted)]
            return replace(_by_rule(seen, "allow", used), source="remembered")
        granted = _together(options, seen)
        if granted:
            text = ", ".join(pattern.text for pattern in granted)
            return _answered(decision, "allow", "option", f"{call.tool_name} is allowed by --allow {text}")
        if mode == "approve_all":
            return _answered(decision, "allow", "mode", f"{call.tool_name} is allowed by --approve-all")
    if mode == "reject_all":
        return _answered(decision, "deny", "mode", f"{call.tool_name} is denied by --reject-all")
    return None


def deny_without_approver(decision: Decision, call: ToolCallInfo) -> Decision:
    """The denial of a call that needs a person where there is none; says what would allow it."""
    reason = f"{call.tool_name} is denied: no terminal to ask on"
    hint = None if decision.person_only else narrowest_rule(call)
    if decision.person_only:
        reason += f", and only a person can allow this ({decision.reason})"
    elif hint is None:
        reason += ", and no rule can allow arguments that could not be resolved"
    else:
        ways = [f"--allow {shlex.quote(hint)}"]
        if (wider := wider_rule(call)) is not None:
            ways.append(f"calls like it with --allow {shlex.quote(wider)}")
        if decision.source not in ("ask", "policy"):
            ways.append(f"with {'that' if wider is None else 'such a'} rule under approvals.allow")
        reason += f"; allow it with {(', or ' if wider is not None else ' or ').join(ways)}"
    return _answered(decision, "deny", "unattended", reason)


def _answered(
    decision: Decision, effect: Effect, source: Literal["remembered", "option", "mode", "unattended"], reason: str
) -> Decision:
    return Decision(
        effect, reason, source=source, rule=decision.rule, place=decision.place, person_only=decision.person_only
    )


def _denied(
    seen: PreparedCall, policy: Policy, metadata: Effect | None, toolset: Decision | None, function: Effect | None
) -> Decision | None:
    call = seen.call
    if toolset is not None and toolset.effect == "deny":
        return Decision(
            "deny", f"{call.tool_name} is blocked: {toolset.reason or 'its toolset forbids it'}", source="blocked"
        )
    for rule in policy.denies:
        if matches(rule.pattern, seen, restrictive=True):
            return _by_rule(seen, "deny", [rule])
    if function == "deny":
        return Decision("deny", f"{call.tool_name} is denied by {policy.function_name}", source="policy")
    if metadata == "deny":
        return Decision("deny", f"{call.tool_name} is denied by its own metadata", source="metadata")
    return None


def _must_ask(seen: PreparedCall, policy: Policy, toolset: Decision | None, function: Effect | None) -> Decision | None:
    call = seen.call
    # A rule is not a person: a question marked as a person's own is asked before any rule may allow.
    if toolset is not None and toolset.person_only:
        reason = toolset.reason or "only a person can allow this"
        return Decision("ask", f"{call.tool_name} needs a person: {reason}", person_only=True)
    for rule in policy.asks:
        if matches(rule.pattern, seen, restrictive=True):
            return _by_rule(seen, "ask", [rule])
    if function == "ask":
        return Decision("ask", f"{call.tool_name} is asked about by {policy.function_name}", source="policy")
    return None


def _allowed(seen: PreparedCall, policy: Policy, metadata: Effect | None, function: Effect | None) -> Decision | None:
    call = seen.call
    granted = _together([rule.pattern for rule in policy.allows], seen)
    if granted:
        return _by_rule(seen, "allow", [rule for rule in policy.allows if any(rule.pattern is one for one in granted)])
    if function == "allow":
        return Decision("allow", f"{call.tool_name} is allowed by {policy.function_name}", source="policy")
    if metadata == "allow":
        return Decision("allow", f"{call.tool_name} is allowed by its own metadata", source="metadata")
    return None


def _by_tool(call: ToolCallInfo, metadata: Effect | None, toolset: Decision | None) -> Decision | None:
    if metadata == "ask":
        return Decision("ask", f"{call.tool_name} is asked about by its own metadata", source="metadata")
    if toolset is None:
        return None
    word = "is allowed" if toolset.effect == "allow" else "is asked about"
    return Decision(
        toolset.effect, f"{call.tool_name} {word}: {toolset.reason or 'its toolset says so'}", source="toolset"
    )


def _by_default(call: ToolCallInfo, policy: Policy, harmless: str, *, calls_require_approval: bool) -> Decision:
    if policy.default == "deny":
        return Decision("deny", f"{call.tool_name} is denied by default: no rule allows it", source="default")
    if calls_require_approval:
        return Decision(
            "ask", f"{call.tool_name} is asked about: the project asks about calls of agents", source="default"
        )
    if policy.default is not None:
        word = "allowed" if policy.default == "allow" else "asked about"
        return Decision(policy.default, f"{call.tool_name} is {word} by approvals.default", source="default")
    if call.kind in _TRUSTED:
        why = harmless or _TRUSTED[call.kind]
        return Decision("allow", f"{call.tool_name} is allowed by default: {why}", source="default")
    return Decision("ask", f"{call.tool_name} is asked about by default: no rule speaks of it", source="default")


def _by_rule(seen: PreparedCall, effect: Effect, rules: list[Rule]) -> Decision:
    text = ", ".join(rule.text for rule in rules)
    places = [rule.place for rule in rules if rule.place]
    word = {"allow": "allowed", "ask": "asked about", "deny": "denied"}[effect]
    why = ", ".join(rule.why for rule in rules if rule.why)
    unresolved = effect != "allow" and seen.unresolved
    reason = "".join(
        (
            f"{seen.call.tool_name} is {word} by the rule {text}",
            f" ({', '.join(places)})" if places else "",
            f": {why}" if why else "",
            "; its arguments could not be resolved" if unresolved else "",
        )
    )
    return Decision(effect, reason, source=effect, rule=text, place=", ".join(places) or None)


def _together(patterns: Sequence[Pattern], seen: PreparedCall) -> list[Pattern]:
    """The first patterns that between them allow every stage of a call; none when something is left over."""
    missing = set(range(seen.stages))
    used: list[Pattern] = []
    for pattern in patterns:
        found = missing & covers(pattern, seen)
        if found:
            used.append(pattern)
            missing -= found
            if not missing:
                return used
    return []

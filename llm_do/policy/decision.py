"""The function that decides whether a tool call may run, and the automatic answers to approval questions.

These functions are pure. Other modules call policy functions, prompt people and store answers, and pass the results in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from llm_do.policy.matcher import PreparedCall, covers, is_unresolved, matches, prepare_call
from llm_do.policy.pattern import Pattern
from llm_do.policy.proposals import narrowest_rule, wider_rule
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import Decision, Effect, ToolCallInfo, ToolKind
from llm_do.text.sanitizer import shell_word

__all__ = ["Mode", "answer_automatically", "decide", "deny_without_approver"]

Mode = Literal["prompt", "approve_all", "reject_all"]
"""How a question that nothing else answered is answered: by a person, with yes, or with no."""

_TRUSTED: Mapping[ToolKind, str] = {
    "agent": "its own calls are decided one by one",
    "flow": "its own calls are decided one by one",
    "handoff": "its own calls are decided one by one",
    "builtin": "it changes nothing outside the run",
}
"""The kinds that are allowed by default, each with the reason."""


def decide(
    call: ToolCallInfo,
    policy: Policy,
    *,
    metadata: Effect | None = None,
    toolset: Decision | None = None,
    function: Effect | None = None,
    calls_require_approval: bool = False,
    default_reason: str = "",
) -> Decision:
    """Decide about a call: the first line of this table that applies wins.

    1. blocked or deny from any source: denied;
    2. ask from a rule or the policy function, or a toolset's question that only a person may answer: ask;
    3. allow from a rule or the policy function, or from metadata unless the toolset requires approval: allowed;
    4. ask from metadata, then the toolset's own decision;
    5. the policy's default, else the default of the tool's kind.

    Example:
        >>> decide(ToolCallInfo("send", {"to": "ann"}), Policy()).effect
        'ask'
        >>> decide(ToolCallInfo("send", {"to": "ann"}), Policy(), metadata="allow").source
        'metadata'
    """
    prepared = prepare_call(call)
    return (
        _deny(prepared, policy, metadata, toolset, function)
        or _ask(prepared, policy, toolset, function)
        or _allow(prepared, policy, None if toolset is not None and toolset.required else metadata, function)
        or _decide_by_tool(call, metadata, toolset)
        or _decide_by_default(call, policy, default_reason, calls_require_approval=calls_require_approval)
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
    """Answer an approval question without a person, or return None if a person has to answer it.

    A remembered answer comes first, then `--allow PATTERN`, then the mode. None of them may answer a question that is
    reserved for a person, except that `reject_all` still denies it.
    """
    if decision.effect != "ask":
        return decision
    if not decision.person_only:
        if remembered:
            reason = f"{call.tool_name} was allowed by an earlier answer" + (f" ({place})" if place else "")
            answer = _answer(decision, "allow", "remembered", reason)
            return replace(answer, place=place or answer.place)
        prepared = prepare_call(call)
        patterns = _covering_patterns([rule.pattern for rule in rules], prepared)
        if patterns:
            used = [rule for rule in rules if any(rule.pattern is pattern for pattern in patterns)]
            return replace(_decide_by_rules(prepared, "allow", used), source="remembered")
        patterns = _covering_patterns(options, prepared)
        if patterns:
            text = ", ".join(pattern.text for pattern in patterns)
            return _answer(decision, "allow", "option", f"{call.tool_name} is allowed by --allow {text}")
        if mode == "approve_all":
            return _answer(decision, "allow", "mode", f"{call.tool_name} is allowed by --approve-all")
    if mode == "reject_all":
        return _answer(decision, "deny", "mode", f"{call.tool_name} is denied by --reject-all")
    return None


def deny_without_approver(decision: Decision, call: ToolCallInfo) -> Decision:
    """Deny a call that needs a person's approval when no one can be prompted; the reason names rules that allow it."""
    reason = f"{call.tool_name} is denied: no terminal to ask on"
    hint = None if decision.person_only else narrowest_rule(call)
    if decision.person_only:
        reason += f", and only a person can allow this ({decision.reason})"
    elif hint is None:
        unresolved = is_unresolved(call)
        reason += (
            f", and no rule can allow {'arguments that could not be resolved' if unresolved else 'just this call'}"
        )
    else:
        ways = [f"--allow {shell_word(hint)}"]
        if (wider := wider_rule(call)) is not None:
            ways.append(f"calls like it with --allow {shell_word(wider)}")
        if decision.source not in ("ask", "policy"):
            ways.append(f"with {'that' if wider is None else 'such a'} rule under approvals.allow")
        reason += f"; allow it with {(', or ' if wider is not None else ' or ').join(ways)}"
    return _answer(decision, "deny", "unattended", reason)


def _answer(
    decision: Decision, effect: Effect, source: Literal["remembered", "option", "mode", "unattended"], reason: str
) -> Decision:
    return Decision(
        effect, reason, source=source, rule=decision.rule, place=decision.place, person_only=decision.person_only
    )


def _deny(
    prepared: PreparedCall, policy: Policy, metadata: Effect | None, toolset: Decision | None, function: Effect | None
) -> Decision | None:
    call = prepared.call
    if toolset is not None and toolset.effect == "deny":
        return Decision(
            "deny", f"{call.tool_name} is blocked: {toolset.reason or 'its toolset forbids it'}", source="blocked"
        )
    for rule in policy.denies:
        if matches(rule.pattern, prepared, restrictive=True):
            return _decide_by_rules(prepared, "deny", [rule])
    if function == "deny":
        return Decision("deny", f"{call.tool_name} is denied by {policy.function_name}", source="policy")
    if metadata == "deny":
        return Decision("deny", f"{call.tool_name} is denied by its own metadata", source="metadata")
    return None


def _ask(prepared: PreparedCall, policy: Policy, toolset: Decision | None, function: Effect | None) -> Decision | None:
    call = prepared.call
    # A rule is not a person: a question reserved for a person comes before any rule that allows.
    if toolset is not None and toolset.person_only:
        reason = toolset.reason or "only a person can allow this"
        return Decision("ask", f"{call.tool_name} needs a person's approval: {reason}", person_only=True)
    for rule in policy.asks:
        if matches(rule.pattern, prepared, restrictive=True):
            return _decide_by_rules(prepared, "ask", [rule])
    if function == "ask":
        return Decision("ask", f"{call.tool_name} needs approval under {policy.function_name}", source="policy")
    return None


def _allow(prepared: PreparedCall, policy: Policy, metadata: Effect | None, function: Effect | None) -> Decision | None:
    call = prepared.call
    patterns = _covering_patterns([rule.pattern for rule in policy.allows], prepared)
    if patterns:
        used = [rule for rule in policy.allows if any(rule.pattern is pattern for pattern in patterns)]
        return _decide_by_rules(prepared, "allow", used)
    if function == "allow":
        return Decision("allow", f"{call.tool_name} is allowed by {policy.function_name}", source="policy")
    if metadata == "allow":
        return Decision("allow", f"{call.tool_name} is allowed by its own metadata", source="metadata")
    return None


def _decide_by_tool(call: ToolCallInfo, metadata: Effect | None, toolset: Decision | None) -> Decision | None:
    if metadata == "ask":
        return Decision("ask", f"{call.tool_name} needs approval under its own metadata", source="metadata")
    if toolset is None:
        return None
    verb = "is allowed" if toolset.effect == "allow" else "needs approval"
    return Decision(
        toolset.effect, f"{call.tool_name} {verb}: {toolset.reason or 'its toolset says so'}", source="toolset"
    )


def _decide_by_default(
    call: ToolCallInfo, policy: Policy, default_reason: str, *, calls_require_approval: bool
) -> Decision:
    if policy.default == "deny":
        return Decision("deny", f"{call.tool_name} is denied by default: no rule allows it", source="default")
    if call.new_tool or call.new_arguments:
        added = f"its {_listed(call.new_arguments)}" if call.new_arguments else "it"
        reason = f"{call.tool_name} needs approval: its server has added {added} since it was reviewed"
        return Decision("ask", reason, source="default")
    if calls_require_approval:
        return Decision(
            "ask", f"{call.tool_name} needs approval: so do all calls of agents in this project", source="default"
        )
    if policy.default is not None:
        verb = _VERBS[policy.default]
        return Decision(policy.default, f"{call.tool_name} {verb} approvals.default", source="default")
    if call.kind in _TRUSTED:
        why = default_reason or _TRUSTED[call.kind]
        return Decision("allow", f"{call.tool_name} is allowed by default: {why}", source="default")
    return Decision("ask", f"{call.tool_name} needs approval by default: no rule covers it", source="default")


def _listed(arguments: Sequence[str]) -> str:
    return f"argument{'s' if len(arguments) > 1 else ''} {', '.join(arguments)}"


_VERBS: Mapping[Effect, str] = {"allow": "is allowed by", "ask": "needs approval under", "deny": "is denied by"}


def _decide_by_rules(prepared: PreparedCall, effect: Effect, rules: list[Rule]) -> Decision:
    text = ", ".join(rule.text for rule in rules)
    places = [rule.place for rule in rules if rule.place]
    why = ", ".join(rule.why for rule in rules if rule.why)
    unresolved = effect != "allow" and prepared.unresolved
    reason = "".join(
        (
            f"{prepared.call.tool_name} {_VERBS[effect]} the rule {text}",
            f" ({', '.join(places)})" if places else "",
            f": {why}" if why else "",
            "; its arguments could not be resolved" if unresolved else "",
        )
    )
    return Decision(effect, reason, source=effect, rule=text, place=", ".join(places) or None)


def _covering_patterns(patterns: Sequence[Pattern], prepared: PreparedCall) -> list[Pattern]:
    """Return the first patterns that together allow every stage of a call, or an empty list."""
    uncovered = set(range(prepared.stages))
    used: list[Pattern] = []
    for pattern in patterns:
        covered = uncovered & covers(pattern, prepared)
        if covered:
            used.append(pattern)
            uncovered -= covered
            if not uncovered:
                return used
    return []

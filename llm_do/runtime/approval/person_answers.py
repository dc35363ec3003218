"""What a person's answer comes to: a decision about the call, and the rule that it grants."""

from __future__ import annotations

from llm_do.errors import AbortedError
from llm_do.policy.pattern import Pattern, parse_pattern
from llm_do.policy.proposals import quote_argument
from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.runtime.approval.broker import ApprovalDecision

__all__ = ["granted", "person_decision"]


def person_decision(info: ToolCallInfo, decision: Decision, answer: ApprovalDecision) -> Decision:
    """The decision that a person's answer comes to."""
    if answer.answer == "abort":
        raise AbortedError(f"a person ended the run at {info.tool_name}", agent_path=info.path)
    if answer.answer == "unanswered":
        why = answer.note or "no one could be asked"
        return Decision("deny", f"{info.tool_name} is denied: {why}", source="unattended", rule=decision.rule)
    if answer.answer == "deny":
        note = f": {answer.note}" if answer.note else ""
        return Decision("deny", f"a person denied {info.tool_name}{note}", source="person", rule=decision.rule)
    return Decision("allow", "a person allowed it", source="person", rule=decision.rule)


def granted(text: str, path: str) -> Pattern:
    """The rule of an answer; one without an agent holds for the agent that asked, which has this call path."""
    pattern = parse_pattern(text)
    if pattern.agent is None and pattern.agent_path is None:
        return parse_pattern(f"{quote_argument(path)}:{text}")
    return pattern

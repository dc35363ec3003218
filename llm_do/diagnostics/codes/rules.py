"""LD6xx: approval rules."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["RULES"]

RULES: dict[str, Code] = {
    "LD601": Code(
        "Rule can't be read",
        "error",
        "A rule is `tool`, `tool(PATTERN)` or `tool(name=PATTERN, ...)`, with `agent:` in front when it is for one.",
    ),
    "LD602": Code(
        "Rule disproved",
        "error",
        "An example that stands beside a rule comes out otherwise than it says. Examples are what the rule's primary "
        "argument may be, such as a path or a command, without the tool's name.",
    ),
    "LD603": Code(
        "Broad rule",
        "warning",
        "The rule allows more than a reader expects: every tool, every command, or a program that runs others.",
    ),
    "LD604": Code(
        "Rule that can't match",
        "warning",
        "No agent that the rule speaks of exists or has a tool that it speaks of, so it does nothing.",
    ),
    "LD605": Code(
        "Rule about which argument",
        "error",
        "`tool(PATTERN)` speaks of a tool's primary argument, and this tool declares none.",
    ),
    "LD606": Code(
        "Rule about an unknown argument",
        "error",
        "The tool has no argument of the name that the rule speaks of, so the rule would never match.",
    ),
    "LD607": Code(
        "Right through another agent",
        "warning",
        "A rule keeps a tool from an agent, which has it without a question through an agent that it calls.",
    ),
}

"""Check that a rule means what its author thinks: run its examples, and find rules that allow more than expected.

Both checks depend on the facts of the tools that the rule applies to; `llm_do.policy.matcher` matches rules against
calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from llm_do.policy.arguments import resolve_by_text
from llm_do.policy.command_patterns import is_pipeline
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import Action, ArgumentPattern, Pattern, PatternError, parse_pattern
from llm_do.policy.rules import Rule, RuleFault
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import ToolCallInfo

__all__ = ["check_examples", "facts_of_call", "is_overly_broad"]

_EFFECTS: Mapping[Action, ToolFacts] = {
    "files.read": ToolFacts(primary="path", paths=["path"], reads=["path"]),
    "files.write": ToolFacts(primary="path", paths=["path"], writes=["path"]),
    "net": ToolFacts(primary="url", hosts=["url"]),
}
"""The facts of a tool with one effect, for the examples of rules that are about it."""

_UNKNOWN = ToolFacts(primary="argument")
"""The facts of a tool that is unknown before a run: its arguments are text."""


def facts_of_call(call: ToolCallInfo) -> ToolFacts:
    """Return the facts of a tool that one of its calls reveals."""
    commands = tuple(name for name, value in call.resolved.items() if is_pipeline(value))
    return ToolFacts(call.kind, primary=call.primary, commands=commands)


def is_overly_broad(rule: Rule, tools: Iterable[ToolFacts]) -> bool:
    """Whether a rule allows more of these tools than a reader expects.

    Example:
        >>> shell = ToolFacts(primary="command", commands=["command"])
        >>> rules = [Rule("allow", parse_pattern(text), text) for text in ("*", "shell(*)", "shell(git log *)")]
        >>> [is_overly_broad(rule, [shell]) for rule in rules]
        [True, True, False]
    """
    pattern = rule.pattern
    if rule.effect != "allow":
        return False
    if pattern.action is not None:
        argument = pattern.primary
        if argument is not None and pattern.action == "net" and argument.url.is_any_host:
            return True
        return argument is None or argument.plain.is_star or argument.path.segments == (None,)
    arguments = [pattern.primary] if pattern.primary else [argument for _, argument in pattern.named]
    if all(argument.plain.is_star for argument in arguments) and (pattern.tool.is_star or not pattern.tool.prefix):
        return True
    return any(
        _allows_any_command(pattern, facts)
        for facts in tools
        if facts.commands and (not arguments or facts.has_arguments_of(pattern))
    )


def _allows_any_command(pattern: Pattern, facts: ToolFacts) -> bool:
    named = dict(pattern.named)
    primary = facts.primary_arguments
    constraints = [
        pattern.primary if name in primary and pattern.primary else named.get(name) for name in facts.commands
    ]
    return any(argument is None or argument.command.is_broad for argument in constraints)


def check_examples(rule: Rule, tools: Iterable[ToolFacts]) -> tuple[RuleFault, ...]:
    """Check a rule's examples against the tools it applies to; with no known tool, the arguments are text.

    An example is the text of the primary argument, or of the only argument that the rule names; several arguments are
    written as in the rule: `to=ann, kind=mail`. For a rule that denies or asks, `allows` lists calls that it must not
    match, `refuses` calls that it must. An example written as a full call, `write_file(a.md)`, is also checked as its
    argument alone, so that it isn't refused only because no path looks like a call.

    Example:
        >>> shell = ToolFacts(primary="command", commands=["command"])
        >>> rule = Rule("allow", parse_pattern("shell(git log *)"), "shell(git log *)",
        ...             allows=("git log -3",), refuses=("git -C / log", "git log --output=x", "git log; rm x"))
        >>> check_examples(rule, [shell])
        ()
    """
    faults: list[RuleFault] = []
    restrictive = rule.effect != "allow"
    facts = [each for each in dict.fromkeys(tools) if each.has_arguments_of(rule.pattern)] or [_UNKNOWN]
    if rule.pattern.action is not None:
        facts = [_EFFECTS[rule.pattern.action]]
    for key, examples, expected in (("allows", rule.allows, not restrictive), ("refuses", rule.refuses, restrictive)):
        for index, example in enumerate(examples):
            path = (*rule.path, key, index)
            inner = _argument_of_call(rule, example)
            texts = [example] if inner is None else [example, inner]
            calls = [_example_call(rule.pattern, text, each) for text in texts for each in facts]
            if None in calls:
                hint = "write the argument as text, or as in the rule: name=TEXT, name=TEXT"
                faults.append(RuleFault(f"the example {example!r} doesn't fit the rule {rule.text}", path, hint=hint))
            elif any(matches(rule.pattern, call, restrictive=restrictive) != expected for call in calls if call):
                hint = f"correct the rule or the example, which is {_example_is(rule)} alone, without the tool's name"
                hint = hint if inner is None else f"an example is the argument alone: write {inner!r}"
                faults.append(RuleFault(_proof_text(rule, key, example), path, hint=hint))
    return tuple(faults)


def _example_is(rule: Rule) -> str:
    named = [name for name, _ in rule.pattern.named]
    return f"the text of {named[0]}" if len(named) == 1 and rule.pattern.primary is None else "the argument"


def _argument_of_call(rule: Rule, example: str) -> str | None:
    """Return the text in the parentheses of an example that is written as a full call of the rule's tool."""
    found = _FULL_CALL.fullmatch(example.strip())
    return found[2] if found is not None and rule.pattern.names_tool(found[1]) else None


_FULL_CALL = re.compile(r"(?:[^\s:()]+:)?([A-Za-z0-9_.-]+)\((.*)\)", re.DOTALL)


def _proof_text(rule: Rule, key: str, example: str) -> str:
    verb = {"allow": "allow", "ask": "ask about", "deny": "deny"}[rule.effect]
    if (rule.effect == "allow") == (key == "allows"):
        return f"the rule {rule.text} does not {verb} {example!r}, which is listed under {key}"
    return f"the rule {rule.text} would {verb} {example!r}, which is listed under {key}"


def _text_of(argument: ArgumentPattern) -> str:
    return "".join(
        atom.text if atom.kind in ("char", "void") else {"star": "*", "any": "?"}.get(atom.kind, "")
        for atom in argument.atoms
    )


def _example_call(pattern: Pattern, example: str, facts: ToolFacts) -> ToolCallInfo | None:
    """Return the tool call that an example describes, or None if it doesn't have the shape of the rule."""
    names = [name for name, _ in pattern.named]
    if pattern.action is not None:
        effects = {"files.read": facts.reads, "files.write": facts.writes}.get(pattern.action, facts.hosts)
        values = dict.fromkeys(effects or ("argument",), example)
    elif pattern.primary is not None or not names:
        values = dict.fromkeys(facts.primary_arguments or ("argument",), example)
    elif len(names) == 1:
        values = {names[0]: example}
    else:
        try:
            read = parse_pattern(f"tool({example})")
        except PatternError:
            return None
        values = {name: _text_of(argument) for name, argument in read.named}
        if set(values) != set(names):
            return None
    agent = pattern.agent.sample if pattern.agent else "main"
    segments = pattern.agent_path.segments if pattern.agent_path else ()
    return ToolCallInfo(
        pattern.tool.sample,
        values,
        agent=agent,
        path="/".join(part.sample if part else "x" for part in segments) or "main",
        primary=facts.primary,
        resolved=resolve_by_text(facts, values),
        reads=tuple(facts.reads),
        writes=tuple(facts.writes),
    )

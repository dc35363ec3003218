"""Whether a rule means what its author thinks: its examples, and whether it grants more than a reader expects.

What a rule means for a call is `llm_do.policy.matcher`'s business; here it is only tried out.
"""

from __future__ import annotations

import re
from typing import Literal

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import ArgumentPattern, Pattern, PatternError, parse_pattern
from llm_do.policy.rules import Rule, RuleFault
from llm_do.policy.values import Pipeline, Resolved, ToolCallInfo
from llm_do.text.globs import path_parts

__all__ = ["ArgumentKind", "argument_kind", "check_examples", "naive_split", "overly_broad_reason"]

ArgumentKind = Literal["command", "path", "text"]
"""What a tool's primary argument stands for, and so how a rule's examples are read."""

_PATH_TOOLS = (
    *("read_file", "write_file", "edit_file", "list_files", "search_files"),
    *("make_directory", "move_file", "delete_file"),
)


def argument_kind(pattern: Pattern) -> ArgumentKind:
    """What the argument of a built-in tool stands for, by the tool's name.

    Example:
        >>> [argument_kind(parse_pattern(text)) for text in ("git_shell", "*_file", "send", "*")]
        ['command', 'path', 'text', 'text']
    """
    name = _tool_name(pattern)
    if name == "shell" or name.endswith("_shell"):
        return "command"
    return "path" if any(name == tool or name.endswith(f"_{tool}") for tool in _PATH_TOOLS) else "text"


def _tool_name(pattern: Pattern) -> str:
    """A tool that a pattern speaks of: the built-in one it must mean, else whatever fits."""
    tool = pattern.tool
    meant = [] if tool.is_star else [name for name in ("shell", *_PATH_TOOLS) if tool.matches(name)]
    if len(meant) > 1 and meant[0] == "shell":
        return tool.sample
    return tool.literal or (meant[0] if meant else tool.sample)


def overly_broad_reason(rule: Rule) -> bool:
    """Whether a rule grants more than a reader expects, which is worth a warning.

    Example:
        >>> rules = [Rule("allow", parse_pattern(text), text) for text in ("*", "shell(*)", "shell(git log *)")]
        >>> [overly_broad_reason(rule) for rule in rules]
        [True, True, False]
    """
    pattern = rule.pattern
    if rule.effect != "allow":
        return False
    spoken = [pattern.primary] if pattern.primary else [argument for _, argument in pattern.named]
    if all(argument.plain.is_star for argument in spoken) and (pattern.tool.is_star or not pattern.tool.prefix):
        return True
    if not spoken and pattern.tool.literal is None and pattern.tool.matches("shell"):
        return True
    if argument_kind(pattern) != "command":
        return False
    command = pattern.primary or dict(pattern.named).get("command")
    return command is None or command.command.is_broad


def naive_split(line: str) -> Pipeline | None:
    """A command line of literal words as a pipeline; None when a character of it means more than itself.

    Example:
        >>> naive_split("git log -3 | grep 'a b'"), naive_split("git log; rm x")
        ((('git', 'log', '-3'), ('grep', 'a b')), None)
    """
    stages: list[list[str]] = [[]]
    at, inside = 0, False
    while at < len(line):
        found = _PIECE.match(line, at)
        if found is None:
            return None
        at = found.end()
        if found["blank"] or found["pipe"]:
            inside = False
            stages += [[]] if found["pipe"] else []
            continue
        piece = found["plain"] or found["single"] or found["escaped"] or ""
        if found["double"]:
            piece = re.sub(r'\\(["\\$`])', r"\1", found["double"])
        if inside:
            stages[-1][-1] += piece
        else:
            stages[-1].append(piece)
        inside = True
    return tuple(map(tuple, stages)) if all(stage and stage[0] for stage in stages) else None


_PIECE = re.compile(
    r"""(?P<blank>[ \t]+)|(?P<pipe>\|)|(?P<plain>(?:[^\s;&<>$`(){}*?\[\]#!'"\\|\0]|(?<=@)\{[\w-]+\})+)"""
    r"""|\\(?P<escaped>[^\n\r\0])|'(?P<single>[^'\n\r\0]*)'|"(?P<double>(?:[^"$`\\\n\r\0]|\\[^\n\r\0])*)\""""
)


def check_examples(rule: Rule) -> tuple[RuleFault, ...]:
    """Check a rule's examples; those of a rule that denies or asks say what it must leave alone and what it must not.

    An example is the text of the primary argument, or of the only argument that the rule names; for
    several it is written as in the rule: `to=ann, kind=mail`. One written as a whole call, `write_file(a.md)`, must
    come out as it says for the argument too, so that none is refused only because no path looks like that.

    Example:
        >>> rule = Rule("allow", parse_pattern("shell(git log *)"), "shell(git log *)",
        ...             allows=("git log -3",), refuses=("git -C / log", "git log --output=x", "git log; rm x"))
        >>> check_examples(rule)
        ()
    """
    faults: list[RuleFault] = []
    restrictive = rule.effect != "allow"
    for key, examples, wanted in (("allows", rule.allows, not restrictive), ("refuses", rule.refuses, restrictive)):
        for index, example in enumerate(examples):
            path = (*rule.path, key, index)
            inner = _argument_of_call(rule, example)
            texts = [example] if inner is None else [example, inner]
            calls = [_example_call(rule.pattern, text) for text in texts]
            if None in calls:
                hint = "write the argument as text, or as in the rule: name=TEXT, name=TEXT"
                faults.append(RuleFault(f"the example {example!r} doesn't fit the rule {rule.text}", path, hint=hint))
            elif any(matches(rule.pattern, call, restrictive=restrictive) != wanted for call in calls if call):
                hint = f"correct the rule or the example, which is {_example_is(rule)} alone, without the tool's name"
                hint = hint if inner is None else f"an example is the argument alone: write {inner!r}"
                faults.append(RuleFault(_proof_text(rule, key, example), path, hint=hint))
    return tuple(faults)


def _example_is(rule: Rule) -> str:
    named = [name for name, _ in rule.pattern.named]
    return f"the text of {named[0]}" if len(named) == 1 and rule.pattern.primary is None else "the argument"


def _argument_of_call(rule: Rule, example: str) -> str | None:
    """What stands in the parentheses of an example that is written as a whole call of the rule's tool."""
    found = _WHOLE_CALL.fullmatch(example.strip())
    return found[2] if found is not None and rule.pattern.names_tool(found[1]) else None


_WHOLE_CALL = re.compile(r"(?:[^\s:()]+:)?([A-Za-z0-9_.-]+)\((.*)\)", re.DOTALL)


def _proof_text(rule: Rule, key: str, example: str) -> str:
    says = {"allow": "allow", "ask": "ask about", "deny": "deny"}[rule.effect]
    if (rule.effect == "allow") == (key == "allows"):
        return f"the rule {rule.text} does not {says} {example!r}, which stands under {key}"
    return f"the rule {rule.text} would {says} {example!r}, which stands under {key}"


def _text_of(argument: ArgumentPattern) -> str:
    return "".join(
        atom.text if atom.kind in ("char", "void") else {"star": "*", "any": "?"}.get(atom.kind, "")
        for atom in argument.atoms
    )


def _example_call(pattern: Pattern, example: str) -> ToolCallInfo | None:
    kind = argument_kind(pattern)
    names = [name for name, _ in pattern.named]
    if pattern.primary is not None or not names:
        values = {"primary": example}
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
    resolved: dict[str, Resolved] = {}
    for name, value in values.items():
        if kind == "command" and name in ("primary", "command"):
            resolved[name] = naive_split(value)
        elif (kind == "path" and name not in ("content", "old", "new", "pattern")) or (
            kind == "command" and name == "cwd"
        ):
            parts = path_parts(value)
            resolved[name] = None if parts is None or value.startswith(("/", "~")) else value
    agent = pattern.agent.sample if pattern.agent else "main"
    segments = pattern.agent_path.segments if pattern.agent_path else ()
    where = "/".join(part.sample if part else "x" for part in segments) or "main"
    return ToolCallInfo(_tool_name(pattern), values, agent=agent, path=where, primary="primary", resolved=resolved)

"""Rules: what a project's `approvals` say, read into values, and the proofs that they mean what their author thinks.

Faults are collected, not raised: the linker turns each into a diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, cast

from llm_do._frozen import frozen
from llm_do.policy.globs import path_parts
from llm_do.policy.matching import matches
from llm_do.policy.pattern import ArgumentPattern, Pattern, PatternError, parse_pattern
from llm_do.policy.values import Effect, Pipeline, Resolved, ToolCallInfo

__all__ = [
    "ArgumentKind",
    "Policy",
    "Rule",
    "RuleFault",
    "argument_kind",
    "broad",
    "build_policy",
    "naive_split",
    "option_rules",
    "proofs",
]

ArgumentKind = Literal["command", "path", "text"]
"""What a tool's primary argument stands for, and so how a rule's examples are read."""

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
_PATH_TOOLS = (
    *("read_file", "write_file", "edit_file", "list_files", "search_files"),
    *("make_directory", "move_file", "delete_file"),
)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        effect: What a match means.
        pattern: Which calls.
        text: The pattern as it was written.
        why: The author's reason, shown with every decision it makes.
        place: `file:line` where it stands, or the option it came from.
        allows: Examples that it must let pass.
        refuses: Examples that it must not.
        path: Where it stands in the manifest, such as `("approvals", "allow", 0)`.
    """

    effect: Effect
    pattern: Pattern
    text: str
    why: str = ""
    place: str | None = None
    allows: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    path: tuple[str | int, ...] = ()


@frozen
class RuleFault:
    """Something wrong with a rule.

    Args:
        message: What, one sentence.
        path: Where in the manifest, such as `("approvals", "allow", 0)`.
        column: Where in the rule's text, from 1, when that is known.
        hint: What to write instead.
    """

    message: str
    path: tuple[str | int, ...]
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Policy:
    """Everything a project and the command line say about calls in general.

    Args:
        default: What applies when nothing else does; None leaves it to the tool's kind.
        rules: The rules. Their order means nothing.
        function: Reference of the project's policy function, such as `approvals.py:my_policy`.
    """

    default: Effect | None = None
    rules: tuple[Rule, ...] = ()
    function: str | None = None

    @cached_property
    def denies(self) -> tuple[Rule, ...]:
        """The rules that deny."""
        return tuple(rule for rule in self.rules if rule.effect == "deny")

    @cached_property
    def asks(self) -> tuple[Rule, ...]:
        """The rules that ask."""
        return tuple(rule for rule in self.rules if rule.effect == "ask")

    @cached_property
    def allows(self) -> tuple[Rule, ...]:
        """The rules that allow."""
        return tuple(rule for rule in self.rules if rule.effect == "allow")

    @cached_property
    def function_name(self) -> str:
        """What a reason calls the policy function."""
        return f"the policy function {self.function}" if self.function else "the policy function"

    def plus(self, rules: Iterable[Rule]) -> Policy:
        """This policy with more rules.

        Args:
            rules: The rules.

        Returns:
            The new policy.
        """
        return replace(self, rules=(*self.rules, *rules))


def build_policy(
    data: Mapping[str, object], place_of: Callable[[tuple[str | int, ...]], str | None] | None = None
) -> tuple[Policy, tuple[RuleFault, ...]]:
    """Read the manifest's `approvals`, whose shape is already checked.

    Args:
        data: `default`, `deny`, `ask`, `allow` and `policy`, each optional; a rule is a text or
            `{"rule", "why", "allows", "refuses"}`.
        place_of: The `file:line` of a path in the manifest, such as `("approvals", "allow", 0)`.

    Returns:
        The policy of all rules that can be read, and a fault for each that can't.

    Example:
        >>> policy, faults = build_policy({"allow": ["read_file", "shell(git log"]})
        >>> len(policy.rules), faults[0].path, faults[0].column
        (1, ('approvals', 'allow', 1), 14)
    """
    rules: list[Rule] = []
    faults: list[RuleFault] = []
    for effect in _EFFECTS:
        for index, item in enumerate(cast("Sequence[object]", data.get(effect) or ())):
            path = ("approvals", effect, index)
            entry = cast("Mapping[str, object]", item if isinstance(item, Mapping) else {"rule": item})
            at = (*path, "rule") if isinstance(item, Mapping) else path
            try:
                pattern = parse_pattern(str(entry["rule"]))
            except PatternError as error:
                faults.append(RuleFault(_fault_text(error), at, error.column, error.hint))
                continue
            rules.append(
                Rule(
                    effect,
                    pattern,
                    pattern.text,
                    why=str(entry.get("why") or ""),
                    place=place_of(at) if place_of else None,
                    allows=_texts(entry.get("allows")),
                    refuses=_texts(entry.get("refuses")),
                    path=path,
                )
            )
    function = data.get("policy")
    default = cast("Effect | None", data.get("default"))
    return Policy(default, tuple(rules), None if function is None else str(function)), tuple(faults)


def option_rules(effect: Effect, texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of a command line's `--deny PATTERN` options.

    Args:
        effect: What a match means.
        texts: The patterns.

    Returns:
        The rules, their place the option.

    Raises:
        PatternError: One is no pattern.
    """
    return tuple(Rule(effect, parse_pattern(text), text, place=f"--{effect}") for text in texts)


def argument_kind(pattern: Pattern) -> ArgumentKind:
    """What the argument of a built-in tool stands for, by the tool's name.

    Args:
        pattern: The pattern.

    Returns:
        `command` for `shell` and names that end in `_shell`, `path` for the file tools, else `text`.
    """
    name = pattern.tool.literal or ""
    if name == "shell" or name.endswith("_shell"):
        return "command"
    return "path" if any(name == tool or name.endswith(f"_{tool}") for tool in _PATH_TOOLS) else "text"


def broad(rule: Rule, kind: ArgumentKind | None = None) -> bool:
    """Whether a rule grants more than a reader expects, which is worth a warning.

    Args:
        rule: The rule.
        kind: What its tool's primary argument stands for; None goes by the tool's name.

    Returns:
        True for a rule that allows every tool (`*`), every command (`shell`, `shell(*)`), or any
        arguments to a program that runs others (`shell(env *)`, `shell(python *)`, `shell(git *)`).

    Example:
        >>> [broad(Rule("allow", parse_pattern(text), text)) for text in ("*", "shell(*)", "shell(git log *)")]
        [True, True, False]
    """
    pattern = rule.pattern
    if rule.effect != "allow":
        return False
    spoken = [pattern.primary] if pattern.primary else [argument for _, argument in pattern.named]
    if all(argument.plain.is_star for argument in spoken) and (pattern.tool.is_star or not pattern.tool.prefix):
        return True
    if (kind or argument_kind(pattern)) != "command":
        return False
    command = pattern.primary or dict(pattern.named).get("command")
    return command is None or command.command.is_broad


def naive_split(line: str) -> Pipeline | None:
    """A command line without quotes as a pipeline; None when a character of it means more than itself.

    Args:
        line: The command line.

    Returns:
        Its stages' words.

    Example:
        >>> naive_split("git log -3 | head"), naive_split("git log; rm x")
        ((('git', 'log', '-3'), ('head',)), None)
    """
    if not line.strip() or any(char in line for char in ";&<>$`(){}*?[]#!'\"\\\n\r\0"):
        return None
    stages = tuple(tuple(stage.split()) for stage in line.split("|"))
    return stages if all(stages) else None


def proofs(
    rule: Rule, *, kind: ArgumentKind | None = None, split: Callable[[str], Pipeline | None] = naive_split
) -> tuple[RuleFault, ...]:
    """Check a rule's examples; those of a rule that denies or asks say what it must leave alone and what it must not.

    An example is the text of the primary argument, or of the only argument that the rule names; for
    several it is written as in the rule: `to=ann, kind=mail`. One written as a whole call, `write_file(a.md)`, must
    come out as it says for the argument too, so that none is refused only because no path looks like that.

    Args:
        rule: The rule.
        kind: What its tool's argument stands for; None goes by the tool's name.
        split: Parses a command line; None for one that can't be parsed.

    Returns:
        A fault for every example that the rule gets wrong.

    Example:
        >>> rule = Rule("allow", parse_pattern("shell(git log *)"), "shell(git log *)",
        ...             allows=("git log -3",), refuses=("git -C / log", "git log --output=x", "git log; rm x"))
        >>> proofs(rule)
        ()
    """
    faults: list[RuleFault] = []
    restrictive = rule.effect != "allow"
    for key, examples, wanted in (("allows", rule.allows, not restrictive), ("refuses", rule.refuses, restrictive)):
        for index, example in enumerate(examples):
            path = (*rule.path, key, index)
            inner = _argument_of_call(rule, example)
            texts = [example] if inner is None else [example, inner]
            calls = [_example_call(rule.pattern, text, kind or argument_kind(rule.pattern), split) for text in texts]
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


def _fault_text(error: PatternError) -> str:
    return f"the rule {error.text} can't be read: {error.message}"


def _proof_text(rule: Rule, key: str, example: str) -> str:
    says = {"allow": "allow", "ask": "ask about", "deny": "deny"}[rule.effect]
    if (rule.effect == "allow") == (key == "allows"):
        return f"the rule {rule.text} does not {says} {example!r}, which stands under {key}"
    return f"the rule {rule.text} would {says} {example!r}, which stands under {key}"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("Sequence[object]", value or ()))


def _text_of(argument: ArgumentPattern) -> str:
    return "".join(
        atom.text if atom.kind in ("char", "void") else {"star": "*", "any": "?"}.get(atom.kind, "")
        for atom in argument.atoms
    )


def _example_call(
    pattern: Pattern, example: str, kind: ArgumentKind, split: Callable[[str], Pipeline | None]
) -> ToolCallInfo | None:
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
            resolved[name] = split(value)
        elif kind == "path" and name not in ("content", "old", "new", "pattern"):
            parts = path_parts(value)
            resolved[name] = None if parts is None or value.startswith(("/", "~")) else value
    agent = pattern.agent.prefix if pattern.agent else "main"
    where = (
        "/".join((part.prefix if part else "") or "x" for part in pattern.agent_path.segments)
        if pattern.agent_path
        else "main"
    )
    tool = pattern.tool.literal or "tool"
    return ToolCallInfo(tool, values, agent=agent, path=where, primary="primary", resolved=resolved)

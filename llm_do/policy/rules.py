"""The rules of a project's `approvals`.

Faults are collected, not raised: the linker turns each into a diagnostic. `llm_do.policy.proofs` checks that a rule
means what its author thinks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.values import Decision, Effect, ToolCallInfo
from llm_do.text.globs import Glob
from llm_do.text.sanitizer import shell_word

__all__ = ["Policy", "Rule", "RuleFault", "as_texts", "build_policy", "option_rules", "option_text"]

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")


@frozen
class Rule:
    """One rule: the effect of a match, its pattern, and the examples that it must allow and refuse.

    `why` is the author's reason, shown with every decision that the rule makes. `place` is `file:line` or the option
    that the rule came from; `path` is its place in the manifest, such as `("approvals", "allow", 0)`.
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
    """A fault in a rule: the message, its place in the manifest, the column in the rule (from 1) if known, a hint."""

    message: str
    path: tuple[str | int, ...]
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Policy:
    """The approval policy of a project and its command line.

    `default` applies when nothing else does; None leaves it to the tool's kind. The order of the rules has no effect.
    `function` is the reference of the project's policy function, such as `approvals.py:my_policy`.
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
        """The name of the policy function in a decision's reason."""
        return f"the policy function {self.function}" if self.function else "the policy function"

    @cached_property
    def names_agents(self) -> bool:
        """Whether some rule is only about calls of certain agents."""
        return any(rule.pattern.agent is not None or rule.pattern.agent_path is not None for rule in self.rules)

    @cached_property
    def ordinary(self) -> dict[Hashable, tuple[Decision, Sequence[Rule]]]:
        """A cache of decisions about ordinary calls, by what each depends on: thousands of agents may have one tool."""
        return {}

    def about(self, call: ToolCallInfo) -> Policy:
        """Return this policy without rules that can match no call of its tool by its agent; it decides the same."""
        found = self._index.find(call)
        policy = self._narrower.get(found)
        if policy is None:
            rules = tuple(rule for rule, excluded in zip(self.rules, found, strict=True) if not excluded)
            policy = self._narrower[found] = replace(self, rules=rules)
        return policy

    @cached_property
    def _index(self) -> _RuleIndex:
        return _RuleIndex([rule.pattern for rule in self.rules])

    @cached_property
    def _narrower(self) -> dict[bytes, Policy]:
        return {}

    def plus(self, rules: Iterable[Rule]) -> Policy:
        """Return this policy with more rules."""
        return replace(self, rules=(*self.rules, *rules))


class _RuleIndex:
    """Patterns by the characters that the names of a call must have for one to match.

    It only leaves out what can't match; `llm_do.policy.matcher` says which of the others do.

    Args:
        patterns: The patterns, in the order in which they are found.
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._count = len(patterns)
        tool: dict[str, bytearray] = {}
        agent: dict[str, bytearray] = {}
        for place, pattern in enumerate(patterns):
            for characters, globs in ((tool, _tool_globs(pattern)), (agent, _agent_globs(pattern))):
                for character in _required(globs):
                    characters.setdefault(character, bytearray(self._count))[place] = 1
        self._by_tool = {character: int.from_bytes(places, "little") for character, places in tool.items()}
        self._by_agent = {character: int.from_bytes(places, "little") for character, places in agent.items()}

    def find(self, call: ToolCallInfo) -> bytes:
        """Return a byte for each pattern: 0 if it may match the call, whatever its arguments, else 1."""
        excluded = _lacking(self._by_tool, f"{call.tool_name} {call.tool or ''}")
        excluded |= _lacking(self._by_agent, " ".join((call.agent, call.path, *call.makers)))
        return excluded.to_bytes(self._count, "little")


def _lacking(having: dict[str, int], names: str) -> int:
    """The patterns that need a character which the names of a call don't have."""
    if not names.isascii():  # letters beyond ASCII may stand for others where case doesn't matter
        return 0
    available = set(names.lower())
    excluded = 0
    for character, patterns in having.items():
        if character not in available:
            excluded |= patterns
    return excluded


def _tool_globs(pattern: Pattern) -> Iterator[Glob]:
    if pattern.action is None:
        yield pattern.tool


def _agent_globs(pattern: Pattern) -> Iterator[Glob]:
    if pattern.agent is not None:
        yield pattern.agent
    if pattern.agent_path is not None:
        yield from (each for each in pattern.agent_path.segments if each is not None and each.literal != "/")


def _required(globs: Iterator[Glob]) -> set[str]:
    """The characters that a text must have to match, as lower case; only ASCII, which case changes in one way."""
    texts = [atom.text for glob in globs for atom in glob.atoms if atom.kind == "char"]
    return {text.lower() for text in texts if text.isascii()}


def build_policy(
    data: Mapping[str, object], place_of: Callable[[tuple[str | int, ...]], str | None] | None = None
) -> tuple[Policy, tuple[RuleFault, ...]]:
    """Build the policy from the manifest's `approvals`, whose schema has been validated.

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
                    allows=as_texts(entry.get("allows")),
                    refuses=as_texts(entry.get("refuses")),
                    path=path,
                )
            )
    function = data.get("policy")
    default = cast("Effect | None", data.get("default"))
    return Policy(default, tuple(rules), None if function is None else str(function)), tuple(faults)


def option_rules(effect: Effect, texts: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules of the patterns that an option, such as `deny`, was given."""
    # Decisions name it in what models read and runs record, which doesn't depend on who has started the process.
    return tuple(Rule(effect, parse_pattern(text), text, place=f"--{effect}") for text in texts)


def option_text(effect: Effect, pattern: str) -> str:
    """A pattern as whoever started this process passes it.

    Example:
        >>> option_text("deny", "send(to=ann)")
        "deny='send(to=ann)'"
    """
    return option_name(f"--{effect} {shell_word(pattern)}", f"{effect}={pattern!r}")


def _fault_text(error: PatternError) -> str:
    return f"the rule {error.text} can't be read: {error.message}"


def as_texts(value: object) -> tuple[str, ...]:
    """The items of a list in a file as texts; empty for nothing."""
    return tuple(str(item) for item in cast("Sequence[object]", value or ()))

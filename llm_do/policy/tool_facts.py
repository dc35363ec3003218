"""What a tool is, as data: declared once, by its toolset or by `@tool`, and read by everything that has to know.

The linker, rules and their examples, the decision, questions and reference pages read the same facts; nothing guesses
from a tool's name. How an argument is resolved below a toolset's own root is that toolset's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.policy.pattern import Pattern
from llm_do.policy.values import Effect, ToolKind

__all__ = ["ArgumentKind", "ToolFacts"]

ArgumentKind = Literal["text", "path", "command", "host"]
"""What an argument stands for, and so how a rule's pattern is compared with it."""


@frozen
class ToolFacts:
    """What a tool is, for rules, questions, `check`, `graph` and reference pages.

    Args:
        kind: What stands behind the tool; set by whoever registers it, not by its author.
        arguments: The names of its arguments, None where only its JSON Schema has them.
        primary: The argument that a rule's `tool(PATTERN)` matches; several where the pattern has to hold for each
            (both ends of a move).
        paths: Arguments that are paths below the toolset's root.
        commands: Arguments that are command lines.
        hosts: Arguments that are the name of a host, or a URL.
        reads: Arguments whose targets a call reads.
        writes: Arguments whose targets a call changes.
        default: What happens to an ordinary call where no rule speaks of it; None leaves it to the project.
        reason: Why, in a few words.
        decides: Whether its toolset decides about each call by its arguments; `default` is then for ordinary ones.
        repeatable: Whether a call has no effects, so that it can be repeated, and identical calls joined.

    Example:
        >>> fetch = ToolFacts(primary="url", hosts=["url"], reads=["url"], repeatable=True)
        >>> fetch.argument_kind("url"), fetch.argument_kind("timeout")
        ('host', 'text')
    """

    kind: ToolKind = "function"
    arguments: tuple[str, ...] | None = None
    primary: str | tuple[str, ...] | None = None
    paths: Sequence[str] = ()
    commands: Sequence[str] = ()
    hosts: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    default: Effect | None = None
    reason: str = ""
    decides: bool = False
    repeatable: bool = False

    def __post_init__(self) -> None:
        for name in ("paths", "commands", "hosts", "reads", "writes"):
            object.__setattr__(self, name, _tuple(getattr(self, name)))

    def argument_kind(self, name: str) -> ArgumentKind:
        """What an argument stands for."""
        if name in self.paths:
            return "path"
        if name in self.commands:
            return "command"
        return "host" if name in self.hosts else "text"

    def has_arguments_of(self, pattern: Pattern) -> bool:
        """Whether the tool has the arguments that a pattern speaks of, as far as they are known."""
        if pattern.primary is not None:
            return self.primary is not None
        return self.arguments is None or all(name in self.arguments for name, _ in pattern.named)

    @property
    def primary_arguments(self) -> tuple[str, ...]:
        """The primary argument, or all of them; empty where there is none."""
        return _tuple(self.primary)

    @property
    def named_arguments(self) -> tuple[str, ...]:
        """Every argument that it says something of."""
        every = (self.primary_arguments, self.paths, self.commands, self.hosts, self.reads, self.writes)
        return tuple(dict.fromkeys(name for part in every for name in part))


def _tuple(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name, several or none, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())

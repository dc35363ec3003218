"""The facts of a tool, declared once by its toolset or by `@tool`.

The linker, rules and their examples, decisions, approval questions and the reference pages read these facts; nothing
guesses from a tool's name. A toolset with a root of its own resolves its arguments itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, get_args

from llm_do._startup.frozen import frozen
from llm_do.policy.pattern import Pattern
from llm_do.policy.values import Effect, ToolKind

__all__ = ["ArgumentKind", "ToolFacts"]

ArgumentKind = Literal["text", "path", "command", "host"]
"""The kind of an argument, which determines how a rule's pattern is compared with it."""


@frozen
class ToolFacts:
    """The facts of a tool that rules, approval questions, `check`, `graph` and the reference pages use.

    Args:
        kind: What implements the tool; set by the code that registers it, whatever its author declares.
        arguments: The names of its arguments, None if only its JSON Schema lists them.
        primary: The argument that a rule's `tool(PATTERN)` matches; several if the pattern must match each of them
            (both ends of a move).
        paths: Arguments that are paths below the toolset's root.
        commands: Arguments that are command lines.
        hosts: Arguments that are a host name or a URL.
        reads: Arguments whose targets a call reads.
        writes: Arguments whose targets a call changes.
        default: The effect for an ordinary call that no rule covers; None leaves it to the project.
        reason: The reason for the default, in a few words.
        decides: Whether its toolset decides about each call by its arguments; `default` then applies to ordinary calls.
        repeatable: Whether a call has no side effects, so that it can be repeated and identical calls can be merged.

    Raises:
        ValueError: The default is unknown: it would neither deny a call nor ask about it.

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
        default = cast("object", self.default)
        if default is not None and default not in get_args(Effect):
            raise ValueError(f"a tool's default is 'allow', 'ask' or 'deny', not {default!r}")

    def argument_kind(self, name: str) -> ArgumentKind:
        """Return the kind of an argument."""
        if name in self.paths:
            return "path"
        if name in self.commands:
            return "command"
        return "host" if name in self.hosts else "text"

    def has_arguments_of(self, pattern: Pattern) -> bool:
        """Whether the tool has the arguments that a pattern names, as far as they are known."""
        if pattern.action is not None:
            return True
        if pattern.primary is not None:
            return self.primary is not None
        return self.arguments is None or all(name in self.arguments for name, _ in pattern.named)

    @property
    def reads_attachments(self) -> bool:
        """Whether what it reads are files that a call of an agent or a flow attaches."""
        return self.kind in ("agent", "flow") and bool(self.reads)

    @property
    def primary_arguments(self) -> tuple[str, ...]:
        """The primary arguments as a tuple, empty if there is none."""
        return _tuple(self.primary)

    @property
    def named_arguments(self) -> tuple[str, ...]:
        """Every argument that the facts name."""
        every = (self.primary_arguments, self.paths, self.commands, self.hosts, self.reads, self.writes)
        return tuple(dict.fromkeys(name for part in every for name in part))


def _tuple(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name, several or none as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())

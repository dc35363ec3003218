"""The values that decisions are made of: a call, an effect, a decision.

Pure data; how a decision is reached lives in `llm_do.policy.decision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from llm_do._startup.frozen import frozen

__all__ = [
    "CALLS",
    "Decision",
    "Effect",
    "Host",
    "Pipeline",
    "Resolved",
    "Source",
    "ToolCallInfo",
    "ToolKind",
    "Trail",
    "real_path",
    "to_resolved",
]

Effect = Literal["allow", "ask", "deny"]

ToolKind = Literal["function", "toolset", "toolkit", "mcp", "agent", "flow", "handoff", "builtin"]
"""What stands behind a tool. It chooses the default: agents, flows, handoffs and `builtin`
(`todo`, `ask_user`) are allowed, all others are asked about."""

CALLS: frozenset[ToolKind] = frozenset({"agent", "flow", "handoff"})
"""The kinds that lead to other agents, which a project may want to be asked about."""

Pipeline = tuple[tuple[str, ...], ...]
"""A parsed command line: the argument vectors of its stages, program first."""

Trail = tuple[str, ...]
"""The paths inside a root that an argument goes by when there are links on its way: as it was written first, where it
really is last. What allows matches the last; what denies or asks, any."""


class Host(str):
    """The name or address of a host, in lower case; a text of its own kind, so that rules don't take it for a path."""

    __slots__ = ()


Resolved = str | Trail | Pipeline | Host | None
"""What an argument stands for: a POSIX path inside the toolset's root (`.` is the root) or its trail, a parsed
command line, a host, or None when it should be one of these and can't be (outside the root, not parsable)."""

Source = Literal[
    "blocked",
    "deny",
    "ask",
    "policy",
    "allow",
    "metadata",
    "toolset",
    "default",
    "remembered",
    "option",
    "mode",
    "person",
    "unattended",
]
"""What decided: the line of the table in docs/approvals.md that applied."""

_UNAPPROVED: frozenset[Source] = frozenset({"default", "metadata", "toolset"})


def to_resolved(trail: Trail) -> str | Trail:
    """A path as rules see it: with its trail only where links are on the way.

    Example:
        >>> to_resolved(("a/b",)), to_resolved(("current/b", "releases/1/b"))
        ('a/b', ('current/b', 'releases/1/b'))
    """
    return trail[0] if len(trail) == 1 else trail


def real_path(value: Resolved) -> str | None:
    """Where a resolved path really is; None for what is no path.

    Example:
        >>> real_path("a"), real_path(("current", "releases/1")), real_path((("git", "log"),)), real_path(Host("a"))
        ('a', 'releases/1', None, None)
    """
    last = value[-1] if isinstance(value, tuple) and value else value
    return last if isinstance(last, str) and not isinstance(last, Host) else None


@frozen
class ToolCallInfo:
    """One call a model asks for, as rules, policy functions and toolsets see it.

    Args:
        tool_name: The name on the wire, prefix included.
        args: The validated arguments, JSON-like.
        agent: Name of the agent whose model asks.
        path: Call path of that agent, such as `main/analyst`.
        depth: Depth of that agent; the entry agent is at 1.
        makers: Names of the agents that made this one, if agents did: what rules deny them or ask them about, holds
            for it too.
        toolset: Registered name of the toolset the tool belongs to, None for a plain function.
        tool: The tool's own name inside its toolset, without a prefix.
        kind: What stands behind the tool.
        primary: Name of the argument that `tool(PATTERN)` matches, if the tool declares one; several
            names when the pattern has to hold for each of them (both ends of a move).
        resolved: What arguments stand for, by name, where the toolset says so. A rule matches this
            instead of the argument's text; a None in it keeps every rule from allowing the call, and what isn't
            primary (the directory of a command) has to be named by a rule that looks at arguments.
        restrictive: What more arguments stand for, for rules that deny or ask alone: the directory of a command, where
            the command is the same in any.
    """

    tool_name: str
    args: Mapping[str, Any]
    agent: str = "main"
    path: str = "main"
    depth: int = 1
    toolset: str | None = None
    tool: str = ""
    kind: ToolKind = "function"
    primary: str | tuple[str, ...] | None = None
    resolved: Mapping[str, Resolved] = field(default_factory=dict[str, Resolved])
    makers: tuple[str, ...] = ()
    restrictive: Mapping[str, Resolved] = field(default_factory=dict[str, Resolved])


@frozen
class Decision:
    """What is decided about a call, why, and by what.

    Args:
        effect: allow, ask or deny.
        reason: Why, for a person and for the model.
        source: What decided; a toolset that decides about its own tools says `toolset`.
        rule: The rule's text, when a rule decided.
        place: `file:line` of that rule, when it stands in a file.
        person_only: Only a person may answer this question: no mode, no option, no saved answer (effect is `ask`).
        required: A toolset's question that the tool's metadata doesn't answer.

    Example:
        >>> Decision("allow", source="option").approves, Decision("allow", source="default").approves
        (True, False)
    """

    effect: Effect
    reason: str = ""
    source: Source = "toolset"
    rule: str | None = None
    place: str | None = None
    person_only: bool = False
    required: bool = False

    @property
    def approves(self) -> bool:
        """Whether a rule, a policy function, an option, a mode or a person allowed the call.

        The default doesn't, nor does what a tool says of itself.
        """
        return self.effect == "allow" and self.source not in _UNAPPROVED

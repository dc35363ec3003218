"""The values of the approval policy: a call, an effect, a decision.

Pure data; `llm_do.policy.decision` makes the decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from llm_do._startup.frozen import frozen
from llm_do.policy.urls.url import Url

__all__ = [
    "CALLS",
    "CommandLine",
    "Decision",
    "Effect",
    "FolderPath",
    "Host",
    "Join",
    "Pipeline",
    "Resolved",
    "Source",
    "ToolCallInfo",
    "ToolKind",
    "Trail",
    "is_folder",
    "real_path",
    "to_resolved",
]

Effect = Literal["allow", "ask", "deny"]

ToolKind = Literal["function", "toolset", "toolkit", "mcp", "agent", "flow", "handoff", "builtin"]
"""What implements a tool. The kind sets the default: agents, flows, handoffs and `builtin` tools (`todo`, `ask_user`)
are allowed, all others need approval."""

CALLS: frozenset[ToolKind] = frozenset({"agent", "flow", "handoff"})
"""The kinds that call other agents; a project may require approval for them."""

Pipeline = tuple[tuple[str, ...], ...]
"""A parsed command line: the argument vectors of its commands, program first."""

Join = Literal["|", "&&", "||", ";"]
"""How a command of a line is joined to the one before it."""


class CommandLine(tuple[tuple[str, ...], ...]):
    """A `Pipeline` whose commands may be joined by other operators than `|`.

    Args:
        commands: The argument vectors.
        joins: The operators between them; without any, the commands are a pipeline.
        places: Where paths in the commands lead, as far as it is known: their trails, by the words' texts.
    """

    joins: tuple[Join, ...]
    places: Mapping[str, Trail]

    def __new__(
        cls,
        commands: Iterable[tuple[str, ...]],
        joins: Iterable[Join] = (),
        places: Mapping[str, Trail] = MappingProxyType({}),
    ) -> CommandLine:
        """Build a line of commands."""
        line = super().__new__(cls, commands)
        line.joins = tuple(joins) or ("|",) * (len(line) - 1)
        line.places = places
        return line

    @staticmethod
    def joins_of(pipeline: Pipeline) -> tuple[Join, ...]:
        """Return the operators between the commands of a line."""
        return pipeline.joins if isinstance(pipeline, CommandLine) else ("|",) * (len(pipeline) - 1)


Trail = tuple[str, ...]
"""The paths inside a root that an argument resolves through when it contains links: the path as written first, the real
path last. A rule that allows matches the last; a rule that denies or asks matches any."""


class FolderPath(str):
    """The path of a folder, as the last of a trail; a separate type, since what is below a folder may count too."""

    __slots__ = ()


class Host(str):
    """The name or address of a host, in lower case; a separate type, so that rules don't mistake it for a path.

    Args:
        name: The name or address.
        url: What a URL asks of the host; None for the host alone, or for a URL that can't be read further.
    """

    url: Url | None

    def __new__(cls, name: str, url: Url | None = None) -> Host:
        """Build the host of a URL."""
        host = super().__new__(cls, name)
        host.url = url
        return host


Resolved = str | Trail | Pipeline | Host | None
"""The resolved value of an argument: a POSIX path inside the toolset's root (`.` is the root) or its trail, a parsed
command line, a host, or None if the argument can't be resolved (it is outside the root or can't be parsed)."""

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
"""The line of the table in docs/approvals.md that decided."""

_UNAPPROVED: frozenset[Source] = frozenset({"default", "metadata", "toolset"})


def to_resolved(trail: Trail) -> str | Trail:
    """Return a path as rules see it: with its trail only if it contains links.

    Example:
        >>> to_resolved(("a/b",)), to_resolved(("current/b", "releases/1/b"))
        ('a/b', ('current/b', 'releases/1/b'))
    """
    return trail[0] if len(trail) == 1 else trail


def is_folder(value: Resolved) -> bool:
    """Whether a resolved argument is known to be the path of a folder."""
    return isinstance(value[-1] if isinstance(value, tuple) and value else value, FolderPath)


def real_path(value: Resolved) -> str | None:
    """Return the real path of a resolved argument, or None if the argument isn't a path.

    Example:
        >>> real_path("a"), real_path(("current", "releases/1")), real_path((("git", "log"),)), real_path(Host("a"))
        ('a', 'releases/1', None, None)
    """
    last = value[-1] if isinstance(value, tuple) and value else value
    return last if isinstance(last, str) and not isinstance(last, Host) else None


@frozen
class ToolCallInfo:
    """A tool call that a model requests, as rules, policy functions and toolsets see it.

    Args:
        tool_name: The name on the wire, prefix included.
        args: The validated arguments, JSON-like.
        agent: Name of the agent whose model requests the call.
        path: Call path of that agent, such as `main/analyst`.
        depth: Depth of that agent; the entry agent is at 1.
        makers: Names of the agents that created this one, if any: rules that deny or ask apply to it as they do to
            them.
        toolset: Registered name of the toolset the tool belongs to, None for a plain function.
        tool: The tool's own name inside its toolset, without a prefix.
        kind: What implements the tool.
        primary: Name of the argument that `tool(PATTERN)` matches, if the tool declares one; several
            names if the pattern must match each of them (both ends of a move).
        resolved: The values that the toolset resolved arguments to, by name. A rule matches them instead of the
            argument's text. If one is None, no rule can allow the call. A rule that constrains arguments must name
            every resolved argument that isn't primary, such as the directory of a command.
        reads: Names of the arguments whose targets the call reads, as its tool's facts say.
        writes: Names of the arguments whose targets it changes.
        new_tool: Whether its server has added the tool since its tools were reviewed: only a rule that names the tool
            allows it.
        new_arguments: Arguments that its server has added since then: only a rule that names arguments allows it.
        restrictive: Further resolved values, which only rules that deny or ask match: the directory of a command that
            does the same in any directory.
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
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    new_tool: bool = False
    new_arguments: tuple[str, ...] = ()


@frozen
class Decision:
    """A decision about a call, its reason and its source.

    Args:
        effect: allow, ask or deny.
        reason: The reason, for a person and for the model.
        source: What decided: a toolset that decides about its own tools passes `toolset`.
        rule: The rule's text, if a rule decided.
        place: `file:line` of that rule, if it is in a file.
        person_only: Only a person may answer this question: no mode, no option, no saved answer (effect is `ask`).
        required: The toolset's question stands even if the tool's metadata allows the call.
        basis: A digest of the content whose change was shown to the person who allowed it; None if nothing was shown.
        needed: The entry of `llm-do.lock` that would have answered the question that no one could answer.

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
    basis: str | None = None
    needed: Mapping[str, Any] | None = None

    @property
    def approves(self) -> bool:
        """Whether a rule, a policy function, an option, a mode or a person allowed the call.

        The default and the tool's own metadata don't count as approval.
        """
        return self.effect == "allow" and self.source not in _UNAPPROVED

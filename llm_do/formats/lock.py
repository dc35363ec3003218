"""What `llm-do.lock` says, as values: the tools of servers that were reviewed, and the calls that were allowed.

`lock_file` reads and writes the file; `server_changes` compares tools.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.server_listings import ListedTool
from llm_do.policy.digest import written_call, written_digest
from llm_do.policy.pattern import Pattern
from llm_do.policy.rules import Rule
from llm_do.policy.values import ToolCallInfo

__all__ = ["FILE", "Lock", "LockedApproval", "LockedServer", "address_of", "call_entry", "rule_entry"]

FILE = "llm-do.lock"
"""The file, in the project's folder."""


@frozen
class LockedServer:
    """A server as it was reviewed.

    Args:
        address: Its `command` or `url`, as the manifest had it.
        tools: Its tools, by their own names.
        edited: Those whose entry doesn't have their digest: they count as changed.
        place: Where the entry stands.
    """

    address: Mapping[str, Any]
    tools: Mapping[str, ListedTool]
    edited: frozenset[str] = frozenset()
    place: Location | None = None

    def is_at(self, config: Mapping[str, Any]) -> bool:
        """Whether a server's configuration leads to this server.

        Example:
            >>> LockedServer({"url": "https://a/mcp"}, {}).is_at({"command": None, "url": "https://a/mcp"})
            True
        """
        return self.address == address_of(config)


@frozen
class LockedApproval:
    """A call, or a rule for calls, that a person allowed.

    Args:
        place: `file:line` where it stands.
        rule: The rule; None for a single call.
        digest: The digest of a single call.
        until: The last day on which it holds, as ISO text; empty for good.
        entry: The entry as it is in the file.
    """

    place: str
    rule: Rule | None = None
    digest: str | None = None
    until: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def holds_on(self, day: datetime.date) -> bool:
        """Whether it holds on a day.

        Example:
            >>> LockedApproval("llm-do.lock:3", until="2026-01-31").holds_on(datetime.date(2026, 2, 1))
            False
        """
        return not self.until or day.isoformat() <= self.until


@frozen
class Lock:
    """A project's lock.

    Args:
        servers: The reviewed servers, by toolset.
        approvals: What a person allowed, in the file's order.
        packages: The versions of installed packages whose toolsets and models the project uses.
    """

    servers: Mapping[str, LockedServer] = field(default_factory=dict[str, LockedServer])
    approvals: tuple[LockedApproval, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict[str, str])

    def package_changes(self, packages: Mapping[str, str]) -> list[str]:
        """How packages differ from the lock, each as a sentence without an end.

        Example:
            >>> Lock(packages={"acme": "1.0", "old": "1.0"}).package_changes({"acme": "1.1", "new": "2.0"})
            ['acme: version 1.1 instead of 1.0', 'new: new package, version 2.0', 'old: the package is no longer used']
        """
        found: list[str] = []
        for name in sorted({*self.packages, *packages}):
            before, now = self.packages.get(name), packages.get(name)
            if now is None:
                found.append(f"{name}: the package is no longer used")
            elif before is None:
                found.append(f"{name}: new package, version {now}")
            elif before != now:
                found.append(f"{name}: version {now} instead of {before}")
        return found

    def rules(self, day: datetime.date) -> tuple[Rule, ...]:
        """The rules that hold on a day."""
        return tuple(each.rule for each in self.approvals if each.rule is not None and each.holds_on(day))

    def digests(self, day: datetime.date) -> dict[str, str]:
        """The digests of single calls that are allowed on a day, each with its place."""
        return {each.digest: each.place for each in self.approvals if each.digest is not None and each.holds_on(day)}


def address_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server's configuration identifies it by, which is the same on every machine.

    Example:
        >>> address_of({"command": ["kb", "--stdio"], "url": None, "timeout": 20})
        {'command': ['kb', '--stdio']}
    """
    return {key: config[key] for key in ("command", "url") if config.get(key) is not None}


def call_entry(call: ToolCallInfo, **said: str) -> dict[str, Any] | None:
    """Return the entry that allows exactly one call, or None if JSON can't express its arguments.

    Args:
        call: The call.
        said: `why`, `by`, `on` and `until`.
    """
    try:
        written = written_call(call)
    except ValueError:
        return None  # such as a number that JSON doesn't have
    return {**written, "digest": written_digest(written), **said}


def rule_entry(pattern: Pattern, agent: str, **said: str) -> dict[str, Any]:
    """Return the entry of a rule; one without an agent holds for `agent`."""
    named = pattern.agent is not None or pattern.agent_path is not None
    return {**({} if named else {"agent": agent}), "rule": pattern.text, **said}

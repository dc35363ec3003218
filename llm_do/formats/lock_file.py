"""`llm-do.lock`: its model, parsing one, and writing one.

The text is sorted and has a line for each value, so that version control merges what different people have added.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from pydantic import Field

from llm_do.diagnostics.codes import lock as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.lock import FILE, Lock, LockedApproval, LockedServer
from llm_do.formats.server_changes import tool_digest
from llm_do.formats.server_listings import ListedTool
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.formats.syntax.source import Node, Source
from llm_do.formats.validation.fields import (
    Strict,
    Text,
    empty_dict,
    empty_list,
)
from llm_do.formats.validation.validator import Parsed, parse_result, validate
from llm_do.policy.digest import written_digest
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.proposals import quote_argument
from llm_do.policy.rules import Rule

__all__ = ["approval_entries", "parse_lock", "read_servers", "server_entries", "server_entry", "write_lock"]

_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A day. Days are compared as text, and other scripts' digits come after all of these: such a day would never pass."""
_CALL = ("tool", "toolset", "args", "resolved")


class _Tool(Strict):
    digest: Text
    description: str = ""
    input: dict[str, Any] = Field(default_factory=empty_dict)
    annotations: dict[str, Any] = Field(default_factory=empty_dict)


class _Server(Strict):
    command: list[str] | None = None
    url: Text | None = None
    tools: dict[str, _Tool] = Field(default_factory=empty_dict)


class _Approval(Strict):
    agent: Text | None = None
    rule: Text | None = None
    tool: Text | None = None
    toolset: Text | None = None
    args: dict[str, Any] = Field(default_factory=empty_dict)
    resolved: dict[str, Any] = Field(default_factory=empty_dict)
    digest: Text | None = None
    why: str = ""
    by: str = ""
    on: str | None = None
    until: str | None = None


class _Lock(Strict):
    version: Literal[1]
    servers: dict[str, _Server] = Field(default_factory=empty_dict)
    approvals: list[_Approval] = Field(default_factory=empty_list)
    packages: dict[str, Text] = Field(default_factory=empty_dict)


def parse_lock(text: str, today: datetime.date) -> Parsed[Lock]:
    """Read a lock; what is wrong with an entry leaves the others as they are.

    Args:
        text: The text of `llm-do.lock`.
        today: The day, for approvals that expire.

    Returns:
        The lock, its nodes, and every problem found in it.

    Example:
        >>> parsed = parse_lock('{"version": 1, "approvals": [{"rule": "send"}]}', datetime.date(2026, 1, 31))
        >>> parsed.value.approvals[0].rule.text
        'send'
    """
    source = Source(FILE, text.removeprefix("\ufeff"))
    if (conflict := _CONFLICT.search(source.text)) is not None:
        return parse_result(None, None, [problems.merge_conflict().at(source.place(conflict.start(), conflict.end()))])
    result = parse_json(text, FILE)
    node = result.node
    version = node.entries.get("version") if node is not None else None
    if node is not None and version is not None and version.data() != 1:
        return parse_result(None, node, [problems.unknown_version(version.data()).at(version.place)])
    value, found = validate(_Lock, result)
    if value is None or node is None:
        return parse_result(None, node, found)
    servers = {name: _server(name, server, node, found) for name, server in value.servers.items()}
    approvals = [_approval(entry, index, node, today, found) for index, entry in enumerate(value.approvals)]
    allowed = tuple(each for each in approvals if each is not None)
    return parse_result(Lock(servers, allowed, value.packages), node, found)


def _server(name: str, entry: _Server, node: Node, found: list[Diagnostic]) -> LockedServer:
    server = _locked_server(entry, node.key_place(("servers", name)))
    found += [
        problems.edited_tool(own).at(node.key_place(("servers", name, "tools", own))) for own in sorted(server.edited)
    ]
    return server


def _locked_server(server: _Server, place: Location | None = None) -> LockedServer:
    tools = {
        own: ListedTool(own, entry.description, entry.input, entry.annotations) for own, entry in server.tools.items()
    }
    edited = frozenset(own for own, tool in tools.items() if tool_digest(tool) != server.tools[own].digest)
    address = {"command": server.command} if server.command is not None else {"url": server.url}
    return LockedServer(address, tools, edited, place)


def _approval(
    entry: _Approval, index: int, node: Node, today: datetime.date, found: list[Diagnostic]
) -> LockedApproval | None:
    at = node.place_of(("approvals", index))
    data = entry.model_dump(exclude_unset=True)
    for key, day in (("on", entry.on), ("until", entry.until)):
        if day is not None and not _is_day(day):
            problem = problems.invalid_approval(f"`{key}` has to be a day such as 2026-12-31, not {day!a}")
            found.append(problem.at(node.place_of(("approvals", index, key))))
            return None
    place, until = f"{at.file}:{at.line}", entry.until or ""
    locked: LockedApproval | None = None
    if entry.rule is not None and entry.digest is None and not any(key in data for key in _CALL):
        try:
            locked = LockedApproval(place, _rule(entry, index, place), until=until, entry=data)
        except PatternError as error:
            problem = problems.invalid_approval(f"the rule {error.text} can't be read: {error.message}")
            found.append(problem.at(node.place_of(("approvals", index, "rule"))))
    elif entry.rule is None and entry.tool is not None and entry.agent is not None and entry.digest is not None:
        if written_digest({"toolset": None, "args": {}, "resolved": {}, **data}) == entry.digest:
            locked = LockedApproval(place, digest=entry.digest, until=until, entry=data)
        else:
            found.append(problems.edited_approval().at(node.place_of(("approvals", index, "digest"))))
    else:
        message = "an approval has a `rule`, or an `agent`, a `tool` and a `digest`"
        found.append(problems.invalid_approval(message).at(at))
    if locked is not None and not locked.holds_on(today):
        found.append(problems.expired_approval(until).at(node.place_of(("approvals", index, "until"))))
    return locked


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _rule(entry: _Approval, index: int, place: str) -> Rule:
    text = str(entry.rule)
    pattern = parse_pattern(text)
    if entry.agent is not None:
        if pattern.agent is not None or pattern.agent_path is not None:
            raise PatternError("the entry names the agent too", text, 1, "name it once")
        pattern = parse_pattern(f"{quote_argument(entry.agent)}:{text}")
    return Rule("allow", pattern, pattern.text, why=entry.why, place=place, path=("approvals", index))


def approval_entries(node: Node | None) -> list[dict[str, Any]]:
    """Return the approvals of a lock as they are written, those included that don't hold any more."""
    found = node.at(("approvals",)) if node is not None else None
    return cast("list[dict[str, Any]]", found.data()) if found is not None else []


def server_entries(node: Node | None) -> dict[str, Any]:
    """Return the servers of a lock as they are written, with digests that don't fit."""
    found = node.at(("servers",)) if node is not None else None
    return cast("dict[str, Any]", found.data()) if found is not None else {}


def read_servers(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, LockedServer]:
    """Return servers from their entries, which `server_entry` has made."""
    return {name: _locked_server(_Server.model_validate(entry)) for name, entry in entries.items()}


def server_entry(server: LockedServer) -> dict[str, Any]:
    """Return the entry of a server.

    Example:
        >>> server_entry(LockedServer({"command": ["kb"]}, {}))
        {'command': ['kb'], 'tools': {}}
    """
    return {**server.address, "tools": {own: _tool_entry(tool) for own, tool in server.tools.items()}}


def write_lock(
    servers: Mapping[str, Mapping[str, Any]],
    approvals: Iterable[Mapping[str, Any]],
    packages: Mapping[str, str] | None = None,
) -> str:
    """Return the text of the file; identical entries are written once.

    Example:
        >>> print(write_lock({}, [{"rule": "send", "agent": "main"}]), end="")
        {
          "approvals": [
            {
              "agent": "main",
              "rule": "send"
            }
          ],
          "servers": {},
          "version": 1
        }
    """
    kept = {json.dumps(dict(entry), sort_keys=True): dict(entry) for entry in approvals}
    data: dict[str, object] = {
        "version": 1,
        "servers": dict(servers),
        "approvals": [kept[key] for key in sorted(kept, key=lambda key: _order(kept[key], key))],
        **({"packages": dict(packages)} if packages else {}),
    }
    return json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _tool_entry(tool: ListedTool) -> dict[str, Any]:
    return {
        "digest": tool_digest(tool),
        "description": tool.description or "",
        "input": dict(tool.schema),
        "annotations": dict(tool.annotations),
    }


def _order(entry: Mapping[str, Any], text: str) -> tuple[str, str, str]:
    return str(entry.get("agent") or ""), str(entry.get("tool") or entry.get("rule") or ""), text

"""What has changed between two states of a server's tools: which are new, gone or renamed, and which fields differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.formats.server_listings import ListedTool
from llm_do.text.canonical_json import canonical_json, digest

__all__ = [
    "FieldChange",
    "ServerChanges",
    "change_lines",
    "new_arguments",
    "server_changes",
    "tool_changes",
    "tool_digest",
]

_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords of JSON Schema whose values are data, in which order may matter."""

_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Keywords whose keys are names."""

_NOTHING_IF_EMPTY = frozenset({*_NAMED, "required"})
"""Keywords that say nothing while they are empty."""


@frozen
class FieldChange:
    """A field of a tool that differs; None stands for a field that isn't there."""

    name: str
    before: object
    after: object


@frozen
class ServerChanges:
    """How a server's tools differ from their earlier state, by their own names.

    Args:
        new: Tools that were not there.
        gone: Tools that are no longer there.
        renamed: New names of tools that are otherwise as they were, each with the old name.
        changed: Tools with fields that differ.
    """

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    changed: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict[str, "tuple[FieldChange, ...]"])

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.renamed or self.changed)


def tool_digest(tool: ListedTool) -> str:
    """Return the digest of all that a server says of a tool; what makes no difference doesn't change it.

    Example:
        >>> one = ListedTool("find", None, {"type": "object", "required": ["a", "b"]})
        >>> other = ListedTool("find", None, {"required": ["b", "a"], "type": "object"})
        >>> tool_digest(one) == tool_digest(other)
        True
    """
    return digest([tool.name, tool.description or "", _normal(tool.schema), tool.annotations])


def tool_changes(before: ListedTool, after: ListedTool) -> tuple[FieldChange, ...]:
    """Return the fields of a tool that differ: its description, its arguments one by one, and its annotations.

    Example:
        >>> before = ListedTool("send", "Send.", {"properties": {"to": {"type": "string"}}})
        >>> after = ListedTool("send", "Send.", {"properties": {"to": {"type": "string"}, "bcc": {"type": "string"}}})
        >>> [change.name for change in tool_changes(before, after)], new_arguments(before, after)
        (['argument bcc'], ('bcc',))
    """
    old, new = dict(_fields(before)), dict(_fields(after))
    return tuple(
        FieldChange(name, old.get(name), new.get(name))
        for name in dict.fromkeys((*old, *new))
        if name not in old or name not in new or canonical_json(old[name]) != canonical_json(new[name])
    )


def new_arguments(before: ListedTool, after: ListedTool) -> tuple[str, ...]:
    """Return the arguments that a tool hasn't had before."""
    known = _properties(before.schema)
    return tuple(name for name in _properties(after.schema) if name not in known)


def server_changes(before: Mapping[str, ListedTool], after: Mapping[str, ListedTool]) -> ServerChanges:
    """Compare the tools of a server with an earlier state; their order makes no difference.

    Example:
        >>> find = ListedTool("find", "Find.", {})
        >>> server_changes({"find": find}, {"look": ListedTool("look", "Find.", {})}).renamed
        {'look': 'find'}
    """
    gone = [name for name in sorted(before) if name not in after]
    new = [name for name in sorted(after) if name not in before]
    renamed: dict[str, str] = {}
    for name in new:
        old = next((old for old in gone if not tool_changes(before[old], after[name])), None)
        if old is not None:
            renamed[name] = old
            gone.remove(old)
    changed = {name: tool_changes(before[name], after[name]) for name in sorted(after) if name in before}
    return ServerChanges(
        tuple(name for name in new if name not in renamed),
        tuple(gone),
        renamed,
        {name: changes for name, changes in changed.items() if changes},
    )


def change_lines(changes: Sequence[FieldChange]) -> list[str]:
    """Return changes as lines of a diff, field by field.

    Example:
        >>> change_lines([FieldChange("description", "Send.", "Send to all.")])
        ['description', '-  Send.', '+  Send to all.']
    """
    lines: list[str] = []
    for change in changes:
        lines.append(change.name)
        for mark, value in (("-", change.before), ("+", change.after)):
            if value is not None:
                text = value if isinstance(value, str) else canonical_json(value)
                lines += [f"{mark}  {line}" for line in text.splitlines() or [""]]
    return lines


def _fields(tool: ListedTool) -> Iterator[tuple[str, object]]:
    if tool.description:
        yield "description", tool.description
    schema = cast("dict[str, Any]", _normal(tool.schema))
    properties = _properties(schema)
    for name, value in properties.items():
        yield f"argument {name}", value
    for key, value in schema.items():
        if key != "properties" or not isinstance(value, dict):
            yield f"input {key}", value
    for key, value in tool.annotations.items():
        yield f"annotation {key}", value


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: object = schema.get("properties")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _normal(schema: object, *, names: bool = False) -> object:
    """A schema without differences that mean nothing: `required` lists names in any order, no properties are none.

    With `names`, the keys are names of arguments or definitions, not keywords.
    """
    if isinstance(schema, Mapping):
        part = cast("Mapping[str, object]", schema)
        return {
            key: _normal_keyword(key, value, names=names)
            for key, value in part.items()
            if names or key not in _NOTHING_IF_EMPTY or value not in ({}, [])
        }
    if isinstance(schema, list | tuple):
        return [_normal(item) for item in cast("Sequence[object]", schema)]
    return schema


def _normal_keyword(key: str, value: object, *, names: bool) -> object:
    if names:
        return _normal(value)
    if key in _DATA:
        return value
    if key == "required" and isinstance(value, list):
        listed = cast("list[object]", value)
        return sorted(map(str, listed)) if all(isinstance(each, str) for each in listed) else listed
    return _normal(value, names=key in _NAMED)

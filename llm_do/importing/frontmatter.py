"""The frontmatter of a Markdown file, read line by line as its writer meant it, because most of it is nearly YAML.

A description may contain `: `, quotation marks, tabs, or a dialogue whose lines look like keys. So a key is a line that
begins with a known word, or with any word where no text is open.
"""

from __future__ import annotations

import re
import textwrap

from llm_do._startup.frozen import frozen

__all__ = ["Field", "MarkdownFile", "NotAnAgentError", "UnreadableFileError", "read_markdown"]

KEYS = frozenset(
    (
        *("name", "description", "tools", "allowedtools", "disallowedtools", "model", "color", "colour", "hooks"),
        *("permissionmode", "mcpservers", "skills", "memory", "background", "isolation", "effort", "maxturns"),
        "initialprompt",
    )
)
"""The keys of Claude Code's subagents, in lower case and without separators."""

_DIALOGUE = frozenset(
    (
        *("user", "assistant", "context", "commentary", "example", "examples", "system", "human", "note", "query"),
        *("response", "scenario", "result", "input", "output", "important", "usage", "trigger", "triggers"),
    )
)
"""Words that begin a line of a description rather than a key."""

_KEY = re.compile(r"""(?P<quote>["']?)(?P<key>[A-Za-z][\w .-]{0,40}?)(?P=quote)[ \t]*:(?P<rest>.*)""", re.DOTALL)
_FENCE = re.compile(r"-{3,}[ \t]*")
_END = re.compile(r"(?:-{3,}|\.{3})[ \t]*")
_COMMENT = re.compile(r"\A(?:\s*<!--.*?-->)+\s*", re.DOTALL)


class UnreadableFileError(Exception):
    """The file is no agent; the message says why, as the end of a sentence about the file."""


class NotAnAgentError(UnreadableFileError):
    """The file is Markdown of another kind."""


@frozen
class Field:
    """One key of the frontmatter.

    Args:
        key: The key as it was written.
        line: Its line in the file, from 1.
        inline: What follows on its line.
        lines: The lines below that belong to it, as they were written.
    """

    key: str
    line: int
    inline: str
    lines: tuple[str, ...] = ()


@frozen
class MarkdownFile:
    """A Markdown file with a frontmatter.

    Args:
        fields: The fields by key, in lower case and without separators.
        body: What follows the frontmatter, without blank lines around it.
        repeated: Further fields with a key that was there already.
    """

    fields: dict[str, Field]
    body: str
    repeated: tuple[Field, ...] = ()


def read_markdown(text: str, keys: frozenset[str] = KEYS) -> MarkdownFile:
    r"""Read a Markdown file with a frontmatter.

    Args:
        text: Its text.
        keys: The keys that it may have, in lower case and without separators; any others only where no text is open.

    Raises:
        NotAnAgentError: It has no frontmatter.
        UnreadableFileError: Its frontmatter has no end.

    Example:
        >>> found = read_markdown("---\nname: a\ndescription: Use when: asked\n---\nHelp.\n")
        >>> found.fields["description"].inline, found.body
        ('Use when: asked', 'Help.')
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    comment = _COMMENT.match(text)
    start = comment.end() if comment is not None else len(text) - len(text.lstrip())
    lines = text[start:].split("\n")
    if not _FENCE.fullmatch(lines[0]):
        raise NotAnAgentError("has no frontmatter between two lines ---")
    end = next((number for number, line in enumerate(lines[1:], 1) if _END.fullmatch(line)), None)
    if end is None:
        raise UnreadableFileError("has a frontmatter that is never closed: a line --- is missing")
    first = text.count("\n", 0, start) + 2
    fields, repeated = _fields(textwrap.dedent("\n".join(lines[1:end])).split("\n"), first, keys)
    body = "\n".join(lines[end + 1 :])
    return MarkdownFile(fields, re.sub(r"\A(?:[ \t]*\n)+", "", body).rstrip(), tuple(repeated))


def _fields(lines: list[str], first: int, keys: frozenset[str]) -> tuple[dict[str, Field], list[Field]]:
    groups: list[tuple[str, str, int, list[str]]] = []
    for number, line in enumerate(lines, first):
        found = _key_of(line, _open_text(groups), keys)
        if found is not None:
            groups.append((found[0], found[1].strip(), number, []))
        elif groups and not line.startswith("#"):
            groups[-1][3].append(line)
    fields: dict[str, Field] = {}
    repeated: list[Field] = []
    for key, inline, number, more in groups:
        field = Field(key, number, inline, tuple(more))
        if normal_key(key) in fields:
            repeated.append(field)
        else:
            fields[normal_key(key)] = field
    return fields, repeated


def normal_key(key: str) -> str:
    """A key in lower case and without separators.

    Example:
        >>> normal_key("permission-mode"), normal_key("permissionMode")
        ('permissionmode', 'permissionmode')
    """
    return re.sub(r"[\s_.-]", "", key).lower()


def _open_text(groups: list[tuple[str, str, int, list[str]]]) -> str | None:
    """The text of the description that the next line may belong to."""
    if not groups or normal_key(groups[-1][0]) != "description":
        return None
    return "\n".join([groups[-1][1], *groups[-1][3]])


def _key_of(line: str, description: str | None, keys: frozenset[str]) -> tuple[str, str] | None:
    """The key that a line begins with and what follows it, None if it continues what is above."""
    found = _KEY.fullmatch(line)
    if found is None:
        return None
    key, rest = found["key"], found["rest"]
    word = normal_key(key)
    if word in keys:
        return key, rest
    if rest and rest[0] not in " \t":
        return None
    if description is not None:
        opened = description.count("<example>") > description.count("</example>")
        if opened or word in _DIALOGUE or " " in key:
            return None
    return key, rest

"""A subagent of Claude Code as an agent of llm-do, and what of it can't be said."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from llm_do._startup.frozen import frozen
from llm_do.importing.field_values import list_value, switches, text_value
from llm_do.importing.frontmatter import Field, MarkdownFile, NotAnAgentError, read_markdown
from llm_do.importing.tool_names import EVERYTHING, Granted, grant
from llm_do.project.tools.builtin_toolsets import BUILTINS

__all__ = ["ALIASES", "FOR_PEOPLE", "Draft", "Note", "description_of", "translate"]

MAX_DESCRIPTION = 1024
"""Characters of a tool's description that every provider accepts; an agent that is called is a tool."""

ALIASES: Mapping[str, str] = {
    "sonnet": "anthropic:claude-sonnet-5-5",
    "opus": "anthropic:claude-opus-5-5",
    "haiku": "anthropic:claude-haiku-5-5",
}
"""Claude Code's names for models, and what they stand for in a new manifest."""

_INHERITED = ("", "inherit", "default")
_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
FOR_PEOPLE = frozenset(
    (
        *("color", "colour", "emoji", "icon", "vibe", "version", "author", "category", "tags", "license", "date"),
        *("created", "updated"),
    )
)
_EXAMPLES = re.compile(
    r"\n*\s*(?:(?:for )?examples?(?: usage)?s?:?\s*)?<(?:example|commentary|context)>.*", re.I | re.S
)
_NAME_LENGTH = 64

_LEFT_OUT = {
    "hooks": "`hooks` are left out, because they run commands: write Python functions, and list them under `hooks`",
    "mcpservers": "`mcpServers` is left out: declare the servers under `toolsets` in project.json, and list them under "
    "`toolsets`",
    "memory": "`memory` is left out: list the toolset `memory` here, which has tools to remember and recall",
    "background": "`background` is left out: calls in one response run in parallel",
    "isolation": "`isolation` is left out: every agent works in the project's folder",
    "initialprompt": "`initialPrompt` is left out: give `entry.args` in project.json",
}


@frozen
class Note:
    """Something about a file that can't be said in an `.agent` file.

    Args:
        text: A sentence.
        line: Its line in the file, from 1.
    """

    text: str
    line: int = 1


@frozen
class Draft:
    """An agent that isn't written yet.

    Args:
        name: Its name, valid, but maybe not its own among others.
        description: Its description, empty if it has none.
        granted: What its tools stand for.
        instructions: Its instructions, as they were.
        model: The model's full name, None if it names none.
        alias: One of `ALIASES` that it names instead.
        max_steps: Model requests in one run, None to leave it to the project.
        thinking: How hard the model thinks, None to leave it to the provider.
        read_only: Whether it may only read.
        skills: The names of the skills that it uses; None for all of the project's.
        skills_line: The line of its skills.
        tools_line: The line of its tools.
        model_line: The line of its model.
        notes: What couldn't be converted.
    """

    name: str
    description: str
    granted: Granted
    instructions: str
    model: str | None = None
    alias: str | None = None
    max_steps: int | None = None
    thinking: str | None = None
    read_only: bool = False
    skills: tuple[str, ...] | None = None
    skills_line: int = 1
    tools_line: int = 1
    model_line: int = 1
    notes: tuple[Note, ...] = ()


def translate(text: str, file: str) -> Draft:
    r"""Translate a subagent.

    Args:
        text: The text of its file.
        file: The file's name, which the agent gets if its frontmatter has none.

    Raises:
        NotAnAgentError: It is Markdown of another kind.
        UnreadableFileError: Its frontmatter has no end.

    Example:
        >>> draft = translate("---\nname: Code Reviewer\ntools: Read, Grep\nmodel: opus\n---\nReview.\n", "a.md")
        >>> draft.name, sorted(draft.granted.files), draft.notes[1].text
        ('code-reviewer', ['read_file', 'search_files'], 'the name is `code-reviewer` instead of `Code Reviewer`')
    """
    found = read_markdown(text)
    fields = found.fields
    if "name" not in fields and "description" not in fields:
        raise NotAnAgentError("has neither a name nor a description in its frontmatter")
    name, notes = _name(fields.get("name"), PurePath(file).stem)
    description, more = description_of(fields.get("description"))
    notes += more
    granted, more = _tools(fields)
    notes += more
    mode, more = _mode(fields.get("permissionmode"))
    notes += more
    model, more = _model(fields.get("model"))
    notes += more
    steps, thinking, more = _limits(fields)
    notes += more
    notes += _rest(found)
    if not found.body:
        notes.append(Note("it has no instructions"))
    notes.sort(key=lambda note: note.line)
    read_only = mode == "plan"
    listed = fields.get("tools") or fields.get("allowedtools")
    return Draft(
        name,
        description,
        granted,
        found.body,
        None if model in ALIASES else model,
        model if model in ALIASES else None,
        steps,
        thinking,
        read_only,
        _skills(fields.get("skills"), granted),
        skills_line=_line(fields.get("skills") or listed),
        tools_line=_line(listed),
        model_line=_line(fields.get("model")),
        notes=tuple(notes),
    )


def _line(field: Field | None) -> int:
    return field.line if field is not None else 1


def valid_name(text: str) -> str:
    """A name that is valid here and as near to the text as possible; empty if nothing of it can be kept.

    Example:
        >>> valid_name("Code Reviewer"), valid_name("3d-artist"), valid_name("Größe"), valid_name("todo")
        ('code-reviewer', 'agent-3d-artist', 'Grosse', 'todo-agent')
    """
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")
    plain = plain.lower() if re.search(r"\s", text.strip()) else plain
    if plain[:1].isdigit():
        plain = f"agent-{plain}"
    if plain in BUILTINS:
        plain = f"{plain}-agent"
    return plain[:_NAME_LENGTH].rstrip("-")


def _name(field: Field | None, stem: str) -> tuple[str, list[Note]]:
    written = text_value(field) if field is not None else ""
    name = valid_name(written) or valid_name(stem.removesuffix(".agent")) or "agent"
    if not written:
        return name, [Note(f"it has no name; it is called `{name}`", field.line if field is not None else 1)]
    if field is not None and name != written:
        return name, [Note(f"the name is `{name}` instead of `{written}`", field.line)]
    return name, []


def description_of(field: Field | None) -> tuple[str, list[Note]]:
    if field is None:
        return "", [Note("it has no description, by which others know when to call it")]
    text = text_value(field, prose=True)
    if len(text) <= MAX_DESCRIPTION:
        return text, []
    short = _EXAMPLES.sub("", text).strip()
    if 0 < len(short) <= MAX_DESCRIPTION and short != text:
        reason = "the examples in the description are left out"
    else:
        short = (short or text)[: MAX_DESCRIPTION - 1].rstrip() + "…"
        reason = "the description is cut short"
    return short, [Note(f"{reason}: some providers refuse more than {MAX_DESCRIPTION:,} characters", field.line)]


def _tools(fields: dict[str, Field]) -> tuple[Granted, list[Note]]:
    notes: list[Note] = []
    listed = fields.get("tools") or fields.get("allowedtools")
    denied = fields.get("disallowedtools")
    if listed is None:
        granted = EVERYTHING
        line = 1
    else:
        line = listed.line
        on = switches(listed)
        if on is None:
            granted = grant(list_value(listed))
        elif any(on.values()):
            granted = grant([name for name, value in on.items() if value])
        else:
            granted = EVERYTHING.without(grant(list(on), denying=True))
        if not list_value(listed):
            notes.append(Note("`tools` is empty, so it has none", line))
    notes += [Note(text, line) for text in granted.notes]
    if denied is not None:
        minus = grant(list_value(denied), denying=True)
        granted = granted.without(minus)
        notes += [Note(text, denied.line) for text in minus.notes if "may call" not in text]
    if "web_search" in granted.others:
        notes.append(Note("the web is searched by the model's provider, which must be able to", line))
    return replace(granted, notes=()), notes


def _skills(field: Field | None, granted: Granted) -> tuple[str, ...] | None:
    """The skills that it uses: those that it lists, or those that its tools let it load; None for any."""
    if field is not None and (listed := list_value(field)):
        return tuple(dict.fromkeys((*listed, *granted.skills)))
    return None if "skills" in granted.others else granted.skills


def _mode(field: Field | None) -> tuple[str, list[Note]]:
    mode = text_value(field) if field is not None else ""
    if field is None or mode.lower() in ("", "default", "plan"):
        return mode.lower(), []
    return mode, [
        Note(
            f"`permissionMode: {mode}` is left out: rules under `approvals` in project.json say what needs no approval",
            field.line,
        )
    ]


def _model(field: Field | None) -> tuple[str | None, list[Note]]:
    written = text_value(field) if field is not None else ""
    if field is None or written.lower() in _INHERITED:
        return None, []
    name = re.sub(r"\[.*\]$", "", written.lower().rpartition("/")[2])
    if re.fullmatch(r"claude-[a-z0-9-]+", name):
        return f"anthropic:{name}", []
    if name in ALIASES:
        return name, []
    return None, [Note(f"`model: {written}` is no model of Claude, and is left to the project", field.line)]


def _limits(fields: dict[str, Field]) -> tuple[int | None, str | None, list[Note]]:
    notes: list[Note] = []
    steps = thinking = None
    turns, effort = fields.get("maxturns"), fields.get("effort")
    if turns is not None:
        written = text_value(turns)
        steps = int(written) if re.fullmatch(r"[1-9][0-9]{0,5}", written) else None
        if steps is None:
            notes.append(Note(f"`{turns.key}: {written}` is no number of requests, and is left out", turns.line))
    if effort is not None:
        written = text_value(effort)
        thinking = written.lower() if written.lower() in _EFFORTS else None
        if thinking is None:
            notes.append(Note(f"`{effort.key}: {written}` is left out", effort.line))
    return steps, thinking, notes


def _rest(found: MarkdownFile) -> Iterator[Note]:
    """The keys that have no counterpart."""
    known = ("name", "description", "skills", "tools", "disallowedtools", "permissionmode", "model", "maxturns")
    for key, field in found.fields.items():
        if key in _LEFT_OUT:
            yield Note(_LEFT_OUT[key], field.line)
        elif key == "allowedtools":
            if "tools" in found.fields:
                yield Note(f"`{field.key}` is left out: `tools` is there too", field.line)
        elif key in FOR_PEOPLE:
            yield Note(f"`{field.key}` is left out: it is for people", field.line)
        elif key not in (*known, "effort"):
            yield Note(f"`{field.key}` is left out: it is unknown", field.line)
    for field in found.repeated:
        yield Note(f"`{field.key}` appears twice, and the first one counts", field.line)

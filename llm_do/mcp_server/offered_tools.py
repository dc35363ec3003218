"""What a project offers to MCP clients: its entry, and its agents and flows, each with the schema of its input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mcp.types import Tool

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.project.inputs import PromptInput
from llm_do.project.project import Project
from llm_do.project.registry import callable_names
from llm_do.runtime.session.entries import Entry, entry_for
from llm_do.text.words import which_name

__all__ = ["OfferedTool", "offered_tools"]

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
"""What the names of tools may not have in some clients."""

_ATTACHMENTS = "attachments"

LONGEST_NAME = 64
"""Characters of a tool's name that all clients accept."""


@frozen
class OfferedTool:
    """A callable of the project as a tool.

    Args:
        entry: Its name in the project; None for the project's entry.
        definition: The tool as clients see it.
        withheld: Fields of the input that clients don't set: paths of files to attach, which elsewhere a person names
            and here the client's model would.
    """

    entry: str | None
    definition: Tool
    withheld: frozenset[str] = frozenset()


def offered_tools(project: Project, only: Sequence[str]) -> Mapping[str, OfferedTool]:
    """The tools of a project, by the names that clients see.

    Args:
        project: The project.
        only: The agents, flows and functions to offer; empty for the entry and all agents and flows.

    Raises:
        UsageError: The project has nothing of a name in `only`.
    """
    offered: dict[str, OfferedTool] = {}
    for entry, found, description in _callables(project, only):
        name = _free_name(found.name, offered)
        schema, withheld = found.input_model.model_json_schema(), frozenset[str]()
        schema.pop("title", None)
        schema.pop("description", None)
        if issubclass(found.input_model, PromptInput) and schema["properties"].pop(_ATTACHMENTS, None):
            withheld = frozenset({_ATTACHMENTS})
        definition = Tool(name=name, description=description, input_schema=schema)
        offered[name] = OfferedTool(entry, definition, withheld)
    return offered


def _callables(project: Project, only: Sequence[str]) -> Iterator[tuple[str | None, Entry, str]]:
    registry, declared = project.registry, project.entry
    names = list(dict.fromkeys(only)) or [name for name, found in registry.items() if found.kind in ("agent", "flow")]
    if not only and declared.kind == "function":
        entry = entry_for(project, registry, None, [], None)
        yield None, entry, _described(getattr(declared.function, "__doc__", None), f"Run {entry.name}.")
    elif not only and declared.name in names:
        names.insert(0, names.pop(names.index(declared.name)))
    for name in names:
        found = registry.get(name)
        if found is None or found.kind == "toolset":
            if name == declared.name:
                yield None, entry_for(project, registry, None, [], None), f"Run {name}."
                continue
            known = callable_names(registry)
            hint = which_name(name, known)
            raise UsageError(f"the project has nothing named {name!r} to offer", hint=hint)
        text = found.value.description if found.kind in ("agent", "flow") else found.value.__doc__
        default = f"Ask the agent {name}." if found.kind == "agent" else f"Run the {found.kind} {name}."
        yield name, entry_for(project, registry, name, [], None), _described(text, default)


def _described(text: str | None, default: str) -> str:
    return " ".join((text or "").split()) or default


def _free_name(name: str, taken: Mapping[str, OfferedTool]) -> str:
    """A name for clients that no other tool has."""
    plain = _FOREIGN.sub("_", name)[:LONGEST_NAME]
    free, number = plain, 2
    while free in taken:
        end = f"_{number}"
        free, number = plain[: LONGEST_NAME - len(end)] + end, number + 1
    return free

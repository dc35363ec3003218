"""The facts that authors declare of their tools: with `@tool`, in a tool's metadata, or on a toolset.

Linker and runtime read them with the same functions, before a run and in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from llm_do.errors import UsageError
from llm_do.policy.tool_facts import ToolFacts
from llm_do.tools import ToolOptions

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition

    from llm_do.project.tools.toolset_wrappers import Level

__all__ = ["FACTS_KEY", "DeclaresFacts", "facts_fault", "function_facts", "metadata_facts", "toolset_facts"]

FACTS_KEY = "facts"
"""The key of a tool's metadata under which its `ToolFacts` stand."""

_FAULT = "facts are a ToolFacts, not a {}"


@runtime_checkable
class DeclaresFacts(Protocol):
    """A toolset that declares what its tools are, by their own names."""

    @property
    def tool_facts(self) -> Mapping[str, ToolFacts]:
        """The facts of its tools; one that isn't there is an ordinary tool."""
        ...


def function_facts(options: ToolOptions) -> ToolFacts:
    """What a function's author declares with `@tool`.

    Example:
        >>> function_facts(ToolOptions(primary="url", hosts=["url"])).argument_kind("url")
        'host'
    """
    return ToolFacts(
        primary=options.primary,
        paths=options.paths,
        commands=options.commands,
        hosts=options.hosts,
        reads=options.reads,
        writes=options.writes,
        repeatable=options.repeatable,
    )


def metadata_facts(metadata: Mapping[str, object]) -> ToolFacts | None:
    """What a tool object's metadata declares, as of a function; None where it says nothing.

    Raises:
        UsageError: It isn't a `ToolFacts`.
    """
    found = metadata.get(FACTS_KEY)
    if found is None:
        return None
    if isinstance(found, ToolFacts):
        return replace(found, kind="function")
    raise UsageError(_FAULT.format(_kind(found)), hint='Write `metadata={"facts": ToolFacts(...)}`.')


def toolset_facts(levels: Sequence[Level], definition: ToolDefinition) -> ToolFacts:
    """What is declared about a toolset's tool: on the outermost toolset that knows it, or in its metadata."""
    found = _declared(levels, definition)
    if isinstance(found, ToolFacts):
        # Tools of trusted kinds are allowed by default, so an author can't choose the kind.
        return replace(found, kind="toolset")
    return ToolFacts("toolset", primary=(definition.metadata or {}).get("primary"))


def facts_fault(levels: Sequence[Level], definition: ToolDefinition) -> str | None:
    """What is wrong with the facts that are declared about a tool; None where nothing is."""
    found = _declared(levels, definition)
    return None if found is None or isinstance(found, ToolFacts) else _FAULT.format(_kind(found))


def _declared(levels: Sequence[Level], definition: ToolDefinition) -> object:
    for toolset, name in levels:
        if isinstance(toolset, DeclaresFacts) and name in toolset.tool_facts:
            return toolset.tool_facts[name]
    return (definition.metadata or {}).get(FACTS_KEY)


def _kind(value: object) -> str:
    return type(value).__name__

"""The registry of names, which agents, tools, toolsets and flows share.

The linker (`llm_do.linker.linker`) fills it from files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.validation.fields import NAME_PATTERN
from llm_do.project.agent_spec import AgentSpec

__all__ = ["NAME_PATTERN", "Kind", "Registered", "Registry", "callable_names"]

Kind = Literal["agent", "tool", "toolset", "flow"]


@frozen
class Registered:
    """A registered name and its value.

    Args:
        name: The name.
        kind: What it names.
        value: An `AgentSpec`; a function or tool object; a toolset instance or factory; or a flow.
        place: Where it was declared; None if registered in code.
    """

    name: str
    kind: Kind
    value: Any
    place: Location | None = None


class Registry(Mapping[str, Registered]):
    """All registered names of a project, immutable after linking.

    To register names later, a runtime makes a new registry with `extended`, so that anything built from the old one
    stays valid.

    Args:
        names: The registered names.

    Example:
        >>> registry = Registry({"greeter": Registered("greeter", "agent", AgentSpec("greeter"))})
        >>> registry.agent("greeter").name
        'greeter'
        >>> registry
        Registry(greeter)
    """

    def __init__(self, names: Mapping[str, Registered] | None = None) -> None:
        self._names = dict(names or {})

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._names)})"

    def __getitem__(self, name: str) -> Registered:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def agent(self, name: str) -> AgentSpec | None:
        """Return the agent of that name; None if the name is unknown or isn't an agent's."""
        found = self._names.get(name)
        return found.value if found is not None and found.kind == "agent" else None

    def agents(self) -> list[AgentSpec]:
        """List all agents in the order they were registered."""
        return [item.value for item in self._names.values() if item.kind == "agent"]

    def extended(self, more: Mapping[str, Registered]) -> Registry:
        """Return a new registry with names added or replaced."""
        return Registry({**self._names, **more})


def callable_names(names: Mapping[str, Registered]) -> list[str]:
    """The names of what can be run or called: all but toolsets, of which only the tools can be."""
    return [name for name, item in names.items() if item.kind != "toolset"]

"""What the name of a toolset stands for: the project's, a built-in one, or one of an installed package.

The linker registers those of packages that a project's agents list. Those that agents in code list are found here, when
such an agent is built.
"""

from __future__ import annotations

import inspect
from typing import Any

from pydantic_ai.toolsets import AbstractToolset

from llm_do._entry_points import describe, find_published, import_fault
from llm_do.errors import RunError
from llm_do.project.registry import Registry
from llm_do.project.tools.builtin_toolsets import find_builtin

__all__ = ["named_toolset"]

_loaded: dict[str, object] = {}


def named_toolset(name: str, registry: Registry, agent: str) -> object | None:
    """Return the toolset of a name, or what makes it; None if nothing has the name.

    Args:
        name: The name.
        registry: The project's names.
        agent: The agent that lists it, for messages.

    Raises:
        RunError: An installed package publishes it, and it can't be used.
    """
    found = registry.get(name)
    if found is not None and found.kind == "toolset":
        return found.value
    return find_builtin(name) or _published_toolset(name, agent)


def _published_toolset(name: str, agent: str) -> object | None:
    """Return what an installed package publishes under a name; None if none does."""
    if name in _loaded:
        return _loaded[name]
    found = find_published("toolsets", name)
    if not found:
        return None
    published, *others = found
    what = f"agent {agent!r} lists the toolset {name!r}"
    if others:
        raise RunError(
            f"{what}, which is published by {' and '.join(map(str, found))}",
            hint="Uninstall all but one of them.",
            agent_path=agent,
        )
    try:
        value = published.load()
        fault = _fault(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a package's code may raise anything, also SystemExit
        value, fault = None, import_fault(error)
    if fault is not None:
        raise RunError(
            f"{what} of {published}, which can't be used: {fault}",
            hint=f"Update or uninstall {published.distribution}.",
            agent_path=agent,
        )
    _loaded[name] = value
    return value


def _fault(value: Any) -> str | None:
    if isinstance(value, AbstractToolset) or (callable(value) and not inspect.isclass(value)):
        return None
    return f"it is {describe(value)}, neither a toolset nor a function that makes one"

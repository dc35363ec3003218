"""Resources that a session holds open for its tools, such as server processes, until the session closes.

Each resource belongs to the event loop it was created in; how tools use it is up to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar, cast
from weakref import WeakKeyDictionary

from pydantic_ai import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from llm_do.formats.server_listings import ListedTool

__all__ = ["Resource", "Resources", "ServerToolset"]


class Resource(Protocol):
    """A resource that must be closed."""

    async def aclose(self) -> None:
        """Close the resource, giving up after a bounded time."""
        ...


R = TypeVar("R", bound=Resource)


class Resources:
    """The open resources of one session, by event loop and key.

    Example:
        >>> asyncio.run(Resources().aclose())
    """

    def __init__(self) -> None:
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Resource]] = WeakKeyDictionary()

    def get(self, key: object, make: Callable[[], R]) -> R:
        """Return the resource for a key in this event loop, created if there is none yet."""
        mine = self._open.setdefault(asyncio.get_running_loop(), {})
        if key not in mine:
            mine[key] = make()
        return cast("R", mine[key])

    async def aclose(self) -> None:
        """Close all resources in this event loop concurrently; a failure to close one doesn't affect the others."""
        mine = self._open.pop(asyncio.get_running_loop(), {})
        with contextlib.suppress(Exception):
            await asyncio.gather(*(each.aclose() for each in mine.values()), return_exceptions=True)


class ServerToolset(AbstractToolset[Any]):
    """A toolset whose tools have its own prefix, unless the agent that lists it sets another.

    Args:
        prefix: Prepended to its tools' names with an underscore; empty for none.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.listed: Sequence[ListedTool] = ()

    def listed_definitions(self) -> list[ToolDefinition]:
        """Return the tools that it had when it was last asked, without a prefix; in a run it may have others."""
        return []

    def with_prefix(self, prefix: str | None) -> Self:
        """Return a toolset with the prefix that an agent sets; the tools' names may depend on it."""
        if prefix is None or prefix == self.prefix:
            return self
        other = copy.copy(self)
        other.prefix = prefix
        return other

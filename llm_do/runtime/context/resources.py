"""What a session holds open for its tools, such as server processes: made at first use, closed with the session.

Everything belongs to the event loop it was made in. What a tool does with a resource is the tool's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar, cast
from weakref import WeakKeyDictionary

from pydantic_ai.toolsets import AbstractToolset

__all__ = ["Resource", "Resources", "ServerToolset"]


class Resource(Protocol):
    """Something open that has to be closed."""

    async def aclose(self) -> None:
        """Close it; what it can't close in a bounded time is given up."""
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
        """The resource of a key in this event loop, made if there is none yet."""
        mine = self._open.setdefault(asyncio.get_running_loop(), {})
        if key not in mine:
            mine[key] = make()
        return cast("R", mine[key])

    async def aclose(self) -> None:
        """Close what is open in this event loop, all at once; nobody's failure keeps the others open."""
        mine = self._open.pop(asyncio.get_running_loop(), {})
        with contextlib.suppress(Exception):
            await asyncio.gather(*(each.aclose() for each in mine.values()), return_exceptions=True)


class ServerToolset(AbstractToolset[Any]):
    """A toolset whose tools are shown under a prefix of its own, unless the agent that lists it names another.

    Args:
        prefix: What stands before its tools' names, with an underscore; empty for nothing.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def under(self, prefix: str | None) -> Self:
        """The same tools under the prefix that an agent names: what it makes of their names may depend on it."""
        if prefix is None or prefix == self.prefix:
            return self
        other = copy.copy(self)
        other.prefix = prefix
        return other

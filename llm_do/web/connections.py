"""Connections of `llm-do serve`: those that ask for nothing, or never finish asking, can't keep others out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ACCEPTED_AT_ONCE", "MOST_UNFINISHED", "BoundedConnection"]

MOST_UNFINISHED = 200
"""Connections without a complete request, idle ones included; a process may have about a thousand files open."""


ACCEPTED_AT_ONCE = 100
"""Connections that are accepted before the oldest are closed."""


class BoundedConnection(H11Protocol):
    """A connection, which is closed when there are too many that came later, and it has no complete request.

    A client of this machine needs a moment to send a request. So those that have been at it the longest are the ones
    that never will.
    """

    _number = 0
    number = 0
    is_dropped = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Begin, and close the oldest unfinished connection if there are too many."""
        super().connection_made(transport)
        BoundedConnection._number += 1
        self.number = BoundedConnection._number
        others = (each for each in cast("set[Any]", self.connections) if isinstance(each, BoundedConnection))
        unfinished = [each for each in others if each.is_unfinished]
        if len(unfinished) > MOST_UNFINISHED:
            oldest = min(unfinished, key=lambda each: each.number)
            oldest.is_dropped = True
            oldest.transport.abort()

    @property
    def is_unfinished(self) -> bool:
        """Whether no request is being answered whose body is complete; a dropped connection is about to go."""
        cycle = cast("Any", self.cycle)
        return not self.is_dropped and (cycle is None or bool(cycle.response_complete or cycle.more_body))

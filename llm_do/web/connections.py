"""Connections of `llm-do serve`: those that never finish asking, or never read the answer, can't keep others out."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from llm_do.web.service import Service

__all__ = ["ACCEPTED_AT_ONCE", "MOST_UNFINISHED", "BoundedConnection", "PromptServer"]

MOST_UNFINISHED = 200
"""Connections without a complete request, idle ones included; a process may have about a thousand files open."""

ACCEPTED_AT_ONCE = 20
"""Connections that are accepted in one turn of the event loop; it takes four until the oldest are closed for them."""

QUEUE = 256
"""Connections that wait to be accepted; others are refused by the system for a second."""

PATIENCE = 60.0
"""Seconds that an answer waits for its client to read on; a client that returns later can resume a stream of events."""


class BoundedConnection(H11Protocol):
    """A connection, which is closed when there are too many that came later, and it has no complete request.

    A client of this machine needs a moment to send a request. So those that have been at it the longest are the ones
    that never will. A connection is also closed when its client has stopped reading what it asked for.
    """

    _number = 0
    number = 0
    is_dropped = False
    _waiting: asyncio.TimerHandle | None = None

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

    def pause_writing(self) -> None:
        """Wait for the client to read, though not for long."""
        super().pause_writing()
        self._stop_waiting()
        self._waiting = self.loop.call_later(PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on, since the client has read."""
        super().resume_writing()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End when the server does, at once if the client reads nothing."""
        if self.flow.write_paused:
            self.transport.abort()
        super().shutdown()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    @property
    def is_unfinished(self) -> bool:
        """Whether no request is being answered whose body is complete; a dropped connection is about to go."""
        cycle = cast("Any", self.cycle)
        return not self.is_dropped and (cycle is None or bool(cycle.response_complete or cycle.more_body))


class PromptServer(Server):
    """A server that ends streams of events when it ends, instead of waiting for the runs that they follow.

    Its sockets hold more connections than it accepts in one turn, for which uvicorn has one number.

    Args:
        config: The settings of the server.
        service: What it serves.
    """

    def __init__(self, config: Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(QUEUE)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        self._service.end_streams()
        await super().shutdown(sockets)

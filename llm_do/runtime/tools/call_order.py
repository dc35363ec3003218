"""The order of one response's tool calls: those to one state machine run one after the other, as the model wrote them.

Whether a call may run when its turn has come is decided in `llm_do.runtime.toolcall.gatekeeper`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Order"]


@dataclass(slots=True, eq=False)
class _Place:
    """One call's place in the queues of its machines."""

    before: tuple[_Place, ...]
    left: asyncio.Event = field(default_factory=asyncio.Event)
    stopped_by: str | None = None


class Order:
    """The order of one response's calls: those to one machine run one after the other.

    A call only ever waits for calls that the model wrote before it, and each of these leaves however it ends, so
    nothing can wait forever.
    """

    __slots__ = ("_places", "_tails")

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._tails: dict[str, _Place] = {}

    def begin(self) -> None:
        """Begin a new response."""
        self._places.clear()
        self._tails.clear()

    def take(self, call_id: str, machines: Sequence[str]) -> None:
        """Give a call its place; to be called in the order in which the model wrote the calls."""
        before = {id(tail): tail for machine in machines if (tail := self._tails.get(machine)) is not None}
        place = self._places[call_id] = _Place(tuple(before.values()))
        for machine in machines:
            self._tails[machine] = place

    async def turn(self, call_id: str) -> str | None:
        """Wait until the calls before this one have ended; returns the tool whose failure stops it, if one does."""
        place = self._places.get(call_id)
        if place is None:
            return None
        for other in place.before:
            if not other.left.is_set():
                await other.left.wait()
            if other.stopped_by is not None:
                place.stopped_by = other.stopped_by
                return other.stopped_by
        return None

    def leave(self, call_id: str, tool_name: str, *, succeeded: bool) -> None:
        """Let the calls after this one run, or stop them."""
        place = self._places.get(call_id)
        if place is None or place.left.is_set():
            return
        if not succeeded and place.stopped_by is None:
            place.stopped_by = tool_name
        place.left.set()

"""What every event has: when and where it happened."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, ClassVar

from llm_do._startup.frozen import frozen

__all__ = ["EventBase", "field_names"]


@frozen(kw_only=True)
class EventBase:
    """The fields of every event: its time, and the run and call it belongs to.

    Args:
        seq: Number of the event in its run, from 0, without gaps. In a durable run, streamed text has the number of the
            last event before it.
        time: Seconds since the epoch.
        run_id: The run.
        call_id: The call it happened in.
        parent_call_id: The call that made that call; None for the entry.
        agent_name: Name of the agent or entry.
        path: Call path, such as `main/analyst`.
        depth: 0 for the entry, 1 for what it calls.
    """

    type: ClassVar[str]

    seq: int
    time: float
    run_id: str
    call_id: str
    parent_call_id: str | None
    agent_name: str
    path: str
    depth: int

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data, its type included."""
        data: dict[str, Any] = {"type": self.type}
        for name in field_names(type(self)):
            data[name] = getattr(self, name)
        return data


@cache
def field_names(kind: type[EventBase]) -> tuple[str, ...]:
    """The names of the fields of a kind of event."""
    return tuple(field.name for field in fields(kind))

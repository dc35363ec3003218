"""The path from which 0.3's projects import events, now in `llm_do.runtime.record.events`: see `llm_do.compat`."""

from __future__ import annotations

from llm_do.compat.runtime_event import RuntimeEvent as RuntimeEvent
from llm_do.runtime.record.events.event import EVENT_TYPES as EVENT_TYPES, Event as Event

__all__ = ["EVENT_TYPES", "Event", "RuntimeEvent"]

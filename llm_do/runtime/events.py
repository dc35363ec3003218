"""The import path that events had in 0.3; they are in `llm_do.runtime.record.events`."""

from __future__ import annotations

from llm_do.runtime.record.event_bus import RuntimeEvent as RuntimeEvent
from llm_do.runtime.record.events import EVENT_TYPES as EVENT_TYPES, Event as Event

__all__ = ["EVENT_TYPES", "Event", "RuntimeEvent"]

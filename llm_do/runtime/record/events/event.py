"""`Event`: any event of a run, one frozen class per type. Who receives them is in `subscription`.

Every event becomes JSON data with `to_dict`. The runtime emits events where things happen; none is translated
from a provider's stream. An application's own events are in `event_bus`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast, get_args

from llm_do.runtime.record.events.event_base import EventBase, field_names
from llm_do.runtime.record.events.model_events import (
    HookEvent,
    ModelRequestEvent,
    RetryEvent,
    TextDoneEvent,
    TextEvent,
    ThinkingEvent,
    UsageEvent,
)
from llm_do.runtime.record.events.run_events import (
    HANDOFF_ATTRIBUTES,
    CallFinishedEvent,
    CallStartedEvent,
    GuardEvent,
    HandoffEvent,
    RunFailedEvent,
    RunFinishedEvent,
    RunResumedEvent,
    RunStartedEvent,
    WarningEvent,
)
from llm_do.runtime.record.events.tool_events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    StateChangedEvent,
    ToolCallEvent,
    ToolResultEvent,
)

__all__ = ["EVENT_TYPES", "Event", "event_from_dict"]

Event: TypeAlias = (
    RunStartedEvent
    | RunResumedEvent
    | RunFinishedEvent
    | RunFailedEvent
    | CallStartedEvent
    | CallFinishedEvent
    | TextEvent
    | TextDoneEvent
    | ThinkingEvent
    | ToolCallEvent
    | ToolResultEvent
    | ApprovalRequestedEvent
    | ApprovalResolvedEvent
    | StateChangedEvent
    | GuardEvent
    | HookEvent
    | HandoffEvent
    | ModelRequestEvent
    | RetryEvent
    | UsageEvent
    | WarningEvent
)
"""Any event of a run; distinguish them by `type`, which type checkers understand too."""

EVENT_TYPES: tuple[str, ...] = tuple(kind.type for kind in get_args(Event))
"""The `type` of every event."""

_BY_TYPE: Mapping[object, Callable[..., Event]] = {kind.type: kind for kind in get_args(Event)}


def event_from_dict(data: Mapping[str, Any]) -> Event | None:
    """Return the event that `to_dict` wrote; None if this version has no such type, or a field is missing."""
    kind = _BY_TYPE.get(data.get("type"))
    if kind is None:
        return None
    values = {HANDOFF_ATTRIBUTES.get(name, name): value for name, value in data.items()}
    try:
        return kind(**{name: values[name] for name in field_names(cast("type[EventBase]", kind)) if name in values})
    except TypeError:
        return None

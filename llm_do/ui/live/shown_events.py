"""`shown_event`: an event as a person, a client or a file may see it: with its secrets redacted, as in the journal."""

from __future__ import annotations

from llm_do.runtime.record.events.event import Event, event_from_dict
from llm_do.runtime.record.redaction import redact_data
from llm_do.text.json_data import to_json_data

__all__ = ["shown_event"]


def shown_event(event: Event) -> Event:
    """Return the event without secrets; the event itself if it has none.

    Whatever shortens values comes after this: the beginning of a secret isn't recognized as one.
    """
    data = to_json_data(event.to_dict())
    clean = redact_data(data)
    return event if clean is data else event_from_dict(clean) or event

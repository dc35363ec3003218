"""`ObservationManager`: reads the journal of runs and subscribes to it. Its entries are the runs' own events."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from llm_do.concurrency.isolation import SubscriberGuard
from llm_do.errors import UsageError
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.redaction import Redactor, redactor
from llm_do.runtime.record.stored_records import Filter, Observation
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.text.generated_ids import new_id
from llm_do.threads.run_recording import TRANSIENT
from llm_do.threads.store.codec import event_text

if TYPE_CHECKING:
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.runtime import Runtime

__all__ = ["ObservationManager"]

log = logging.getLogger("llm_do.threads")

_FAILED = "a subscriber of the journal failed on %s"


class ObservationManager:
    """Reads the journal, adds an application's own entries, and notifies subscribers of new ones.

    Args:
        store: The store that has the journal.
        runtime: The runtime whose runs to report to subscribers; without one they only see entries added here.
    """

    def __init__(self, store: ThreadStore, runtime: Runtime | None = None) -> None:
        self._store = store
        self._runtime = runtime
        self._subscribers: list[tuple[Filter, Callable[[Observation], object]]] = []

    async def record(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
    ) -> Observation:
        """Add the application's own entry.

        Args:
            type: Its type.
            data: JSON data; secrets are redacted.
            thread_id: The thread it belongs to.
            user_id: The user it belongs to.

        Returns:
            The entry as written.
        """
        now, run_id = time.time(), new_id()
        text = event_text({"type": type, "seq": 0, "time": now, "run_id": run_id, **data}, redactor())
        observation = Observation(run_id, 0, now, type, thread_id, user_id, json.loads(text))
        await self._store.add_observation(observation)
        self._notify(observation)
        return observation

    async def get(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        types: str | Sequence[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        user_id: str | None = None,
        limit: int | None = None,
    ) -> list[Observation]:
        """Read journal entries in the order they were written.

        Args:
            thread_id: Only this thread's.
            run_id: Only this run's.
            types: Only entries of this type or these types.
            since: At or after this time, in seconds since the epoch.
            until: Before this time.
            user_id: Only this user's.
            limit: Return at most this many, the latest.
        """
        filter = Filter(thread_id, run_id, _types(types), since, until, user_id)
        return await self._store.observations(filter, limit=limit)

    def subscribe(
        self,
        callback: Callable[[Observation], object],
        *,
        types: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> Callable[[], None]:
        """Call a function with each new entry that matches the filter.

        Args:
            callback: Called with each entry; an exception in it is logged and goes no further.
            types: Only entries of this type or these types.
            thread_id: Only this thread's.
            run_id: Only this run's.

        Returns:
            A function that ends the subscription.

        Raises:
            UsageError: The callback is async; entries don't wait for subscribers.
        """
        if iscoroutinefunction(callback):
            raise UsageError(
                "an observation callback can't be async, because observations don't wait for it",
                hint="Put the observation into an asyncio.Queue instead.",
            )
        filter = Filter(thread_id, run_id, _types(types))
        entry = filter, callback
        self._subscribers.append(entry)

        def notify(observation: Observation) -> None:
            if filter.matches(observation):
                callback(observation)

        runtime = self._runtime
        cancel = runtime.shared.subscribe(_Observer(lambda _: None, notify=notify)) if runtime is not None else None

        def unsubscribe() -> None:
            if cancel is not None:
                cancel()
            if entry in self._subscribers:
                self._subscribers.remove(entry)

        return unsubscribe

    def _notify(self, observation: Observation) -> None:
        for filter, callback in list(self._subscribers):
            if filter.matches(observation):
                with SubscriberGuard(log, _FAILED, observation.type):
                    callback(observation)


def _types(types: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if types is None:
        return None
    return (types,) if isinstance(types, str) else tuple(types)


@dataclass(slots=True, eq=False)
class _Observer(Subscription):
    """Delivers a runtime's events as observations."""

    notify: Callable[[Observation], None] = print
    redact: Redactor = field(default_factory=redactor)

    def deliver(self, event: Event, thread_id: str | None, user_id: str | None = None) -> None:
        """Deliver one event; an error in the subscriber is logged and goes no further."""
        if self.closed or event.type in TRANSIENT:
            return
        with SubscriberGuard(log, _FAILED, event.type):
            data = json.loads(event_text(event.to_dict(), self.redact))
            self.notify(Observation(event.run_id, event.seq, event.time, event.type, thread_id, user_id, data))

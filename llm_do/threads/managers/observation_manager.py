"""`ObservationManager`: the journal of runs, read and listened to. What is in it are the runs' own events."""

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
from llm_do.runtime.record.events import Subscription
from llm_do.runtime.record.stored_records import Filter, Observation
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.threads.recorder import PASSING
from llm_do.threads.sqlite.rows import new_token
from llm_do.threads.store.codec import Redactor, event_text, redactor

if TYPE_CHECKING:
    from llm_do.runtime.record.events import Event
    from llm_do.runtime.runtime import Runtime

__all__ = ["ObservationManager"]

log = logging.getLogger("llm_do.threads")

_FAILED = "a subscriber of the journal failed on %s"


class ObservationManager:
    """Reads the journal, adds an application's own entries, and tells subscribers of what comes.

    Args:
        store: Where the journal is.
        runtime: Whose runs subscribers hear of; without one they hear what is recorded here.
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
        """Add an entry of the application's own.

        Args:
            type: Its type.
            data: JSON data; secrets are redacted.
            thread_id: The thread it belongs to.
            user_id: The user it belongs to.

        Returns:
            The entry as it was written.
        """
        now, run_id = time.time(), new_token()
        text = event_text({"type": type, "seq": 0, "time": now, "run_id": run_id, **data}, redactor())
        observation = Observation(run_id, 0, now, type, thread_id, user_id, json.loads(text))
        await self._store.add_observation(observation)
        self._tell(observation)
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
        """Entries of the journal, in the order they were written.

        Args:
            thread_id: Those of one thread.
            run_id: Those of one run.
            types: Those of these types, or of this one.
            since: Not before this time, in seconds since the epoch.
            until: Before this time.
            user_id: Those of one user.
            limit: At most so many, the latest.
        """
        wanted = Filter(thread_id, run_id, _types(types), since, until, user_id)
        return await self._store.observations(wanted, limit=limit)

    def subscribe(
        self,
        callback: Callable[[Observation], object],
        *,
        types: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> Callable[[], None]:
        """Hear of entries as they come: of exactly those that the filter lets through.

        Args:
            callback: Called with each; its exception is logged and reaches nobody.
            types: Those of these types, or of this one.
            thread_id: Those of one thread.
            run_id: Those of one run.

        Returns:
            A function that ends the subscription.

        Raises:
            UsageError: The callback is async: entries don't wait for anybody.
        """
        if iscoroutinefunction(callback):
            raise UsageError(
                "a callback of observations can't be async: they don't wait for it",
                hint="Let it put the observation into an asyncio.Queue.",
            )
        wanted = Filter(thread_id, run_id, _types(types))
        entry = wanted, callback
        self._subscribers.append(entry)

        def tell(observation: Observation) -> None:
            if wanted.matches(observation):
                callback(observation)

        end = self._runtime.shared.subscribe(_Heard(lambda _: None, seen=tell)) if self._runtime is not None else None

        def unsubscribe() -> None:
            if end is not None:
                end()
            if entry in self._subscribers:
                self._subscribers.remove(entry)

        return unsubscribe

    def _tell(self, observation: Observation) -> None:
        for wanted, callback in list(self._subscribers):
            if wanted.matches(observation):
                with SubscriberGuard(log, _FAILED, observation.type):
                    callback(observation)


def _types(types: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if types is None:
        return None
    return (types,) if isinstance(types, str) else tuple(types)


@dataclass(slots=True, eq=False)
class _Heard(Subscription):
    """Hears a runtime's events as the observations that they become."""

    seen: Callable[[Observation], None] = print
    hide: Redactor = field(default_factory=redactor)

    def deliver(self, event: Event, thread_id: str | None, user_id: str | None = None) -> None:
        """Tell of one event; what goes wrong with that is logged and stays here."""
        if self.closed or event.type in PASSING:
            return
        with SubscriberGuard(log, _FAILED, event.type):
            data = json.loads(event_text(event.to_dict(), self.hide))
            self.seen(Observation(event.run_id, event.seq, event.time, event.type, thread_id, user_id, data))

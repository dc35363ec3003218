"""A subscriber to the events of runs, and its filter."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from llm_do.concurrency.isolation import SubscriberGuard
from llm_do.runtime.record.events.event import Event

__all__ = ["Subscription"]

log = logging.getLogger("llm_do.events")


@dataclass(slots=True, eq=False)
class Subscription:
    """One subscriber to run events, and its filter.

    `on_durable` is called once the store has a durable run, so that what is said of it then is true.
    """

    callback: Callable[[Event], object]
    type: str | None = None
    agent: str | None = None
    thread: str | None = None
    text: bool = False
    closed: bool = False
    on_durable: Callable[[], object] | None = None

    def wants_text(self) -> bool:
        """Whether it receives text deltas, so that providers must stream."""
        return not self.closed and (self.text or self.type == "text")

    def deliver(self, event: Event, thread_id: str | None, user_id: str | None = None) -> None:
        """Call the subscriber if its filter matches; an exception is logged and not raised."""
        if self.closed or (self.type is not None and event.type != self.type):
            return
        if self.agent is not None and event.agent_name != self.agent:
            return
        if self.thread is not None and thread_id != self.thread:
            return
        with SubscriberGuard(log, "an event subscriber failed on %s", event.type):
            self.callback(event)

    def say_durable(self) -> None:
        """Call the subscriber as the run is durable from now on."""
        if self.on_durable is not None and not self.closed:
            with SubscriberGuard(log, "an event subscriber failed on %s", "a durable run's beginning"):
                self.on_durable()

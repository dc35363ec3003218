"""`EventBus`: an application's own events by name. A run's events are in `llm_do.runtime.record.events.event`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable

from llm_do.concurrency.isolation import SubscriberGuard

__all__ = ["EventBus"]

log = logging.getLogger("llm_do.events")


class EventBus:
    """Application events by name: subscribers are called in the order they subscribed.

    Independent of a run's own events. A subscriber's exception is logged and doesn't reach the emitter.

    Example:
        >>> import asyncio
        >>> bus, heard = EventBus(), []
        >>> bus.on("step_complete", lambda **data: heard.append(data["step"]))
        >>> asyncio.run(bus.emit("step_complete", step=1))
        >>> heard
        [1]
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Callable[..., object]]] = {}

    def on(self, name: str, callback: Callable[..., Awaitable[object] | object]) -> None:
        """Call `callback`, sync or async, with the data of every event with this name."""
        self._subscribers.setdefault(name, []).append(callback)

    def off(self, name: str, callback: Callable[..., object]) -> None:
        """Stop calling `callback`; does nothing if it isn't subscribed."""
        subscribers = self._subscribers.get(name, [])
        if callback in subscribers:
            subscribers.remove(callback)

    async def emit(self, name: str, **data: object) -> None:
        """Call every subscriber of `name` with `data`, in order."""
        for callback in list(self._subscribers.get(name, ())):
            with SubscriberGuard(log, "a subscriber of %r failed", name):
                result = callback(**data)
                if inspect.isawaitable(result):
                    await result

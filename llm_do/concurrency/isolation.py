"""Isolate the errors of subscribers, for run events, an application's own events and the journal alike."""

from __future__ import annotations

import logging
from types import TracebackType

__all__ = ["SubscriberGuard"]


class SubscriberGuard:
    """Guard the call of a subscriber: log its errors, including `sys.exit()`, instead of raising them.

    Ctrl-C, the end of a generator and the cancellation of the emitter are raised. The logged `message` has a `%s` for
    the name of the event.

    Example:
        >>> log = logging.getLogger("example")
        >>> log.disabled = True
        >>> with SubscriberGuard(log, "failed on %s", "started"):
        ...     raise SystemExit(3)
    """

    __slots__ = ("_event", "_log", "_message")

    def __init__(self, log: logging.Logger, message: str, event: str) -> None:
        self._log = log
        self._message = message
        self._event = event

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, KeyboardInterrupt | GeneratorExit):
            return False
        if not isinstance(error, Exception):
            from asyncio import CancelledError

            from llm_do.concurrency.event_loops import is_being_cancelled

            if isinstance(error, CancelledError) and is_being_cancelled():
                return False
        self._log.error(self._message, self._event, exc_info=error)
        return True

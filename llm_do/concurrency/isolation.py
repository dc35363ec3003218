"""What a subscriber raises stays with it: one rule for run events, an application's own events, and the journal."""

from __future__ import annotations

import logging
from types import TracebackType

__all__ = ["SubscriberGuard"]


class SubscriberGuard:
    """Guard the call of a subscriber: what it raises, `sys.exit()` included, is logged and goes no further.

    What isn't the subscriber's is raised: Ctrl-C, the end of a generator, and the cancellation of the emitter.

    Args:
        log: Where it is logged.
        message: What is logged, with `%s` for what it heard of.
        heard: What it heard of.

    Example:
        >>> log = logging.getLogger("example")
        >>> log.disabled = True
        >>> with SubscriberGuard(log, "failed on %s", "started"):
        ...     raise SystemExit(3)
    """

    __slots__ = ("_heard", "_log", "_message")

    def __init__(self, log: logging.Logger, message: str, heard: str) -> None:
        self._log = log
        self._message = message
        self._heard = heard

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
        self._log.error(self._message, self._heard, exc_info=error)
        return True

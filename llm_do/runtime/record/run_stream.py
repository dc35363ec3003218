"""`RunStream`: a run as a stream of its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from llm_do.concurrency.event_loops import cancel_and_wait, require_event_loop
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.results import RunResult

__all__ = ["RunStream"]


class RunStream:
    """The events of one run, in order, as they happen; `result` is set when it has ended.

    The run starts with the iteration, and leaving the iteration early cancels it. A run that ended early raises its
    error after its last event, as `Runtime.run` does.

    Args:
        begin: Starts the run with a subscription to its events.
        end: Called once the run has ended.
    """

    def __init__(
        self,
        begin: Callable[[Subscription], Coroutine[Any, Any, RunResult]],
        end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._begin = begin
        self._end = end
        self.result: RunResult | None = None

    async def __aiter__(self) -> AsyncIterator[Event]:
        require_event_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._begin(Subscription(queue.put_nowait, text=True)))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            self.result = task.result()
            self.result.raise_for_status()
        finally:
            try:
                await cancel_and_wait(task)
            finally:
                if self._end is not None:
                    await self._end()

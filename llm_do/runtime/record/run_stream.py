"""`RunStream`: a run as a stream of its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from llm_do.concurrency.event_loops import cancel_and_wait, require_event_loop
from llm_do.errors import UsageError
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.results import RunResult

__all__ = ["RunStream"]


class RunStream:
    """The events of one run, in order, as they happen; `result` is set when it has ended.

    The run starts with the iteration, and leaving the iteration early cancels it: `async with` waits until its tools
    have cleaned up. After a bare `break` that happens a little later, or once nothing refers to the iterator any more.
    A run that ended early raises its error after its last event, as `Runtime.run` does.

    Args:
        begin: Starts the run with a subscription to its events.
        end: Called once the run has ended.

    Example:
        >>> async def first_event(runtime):
        ...     async with runtime.stream("Hello") as stream:
        ...         async for event in stream:
        ...             return event.type
        >>> import asyncio
        >>> asyncio.run(first_event(Runtime(Project.load("examples/greeter"), model="test")))
        'run_started'
    """

    def __init__(
        self,
        begin: Callable[[Subscription], Coroutine[Any, Any, RunResult]],
        end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._begin = begin
        self._end = end
        self._task: asyncio.Task[RunResult] | None = None
        self._used = False
        self._closed = False
        self.result: RunResult | None = None

    def __aiter__(self) -> AsyncIterator[Event]:
        require_event_loop()
        if self._used:
            raise UsageError(
                "a stream is one run, and this one has been iterated over or closed",
                hint="Call `stream(...)` again for another run.",
            )
        self._used = True
        return self._events()

    async def _events(self) -> AsyncIterator[Event]:
        # This generator isn't kept: once nothing refers to it, asyncio closes it, which ends the run.
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        if self._closed:
            return
        task = self._task = asyncio.ensure_future(self._begin(Subscription(queue.put_nowait, text=True)))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None and not self._closed:
                yield event
            if not self._closed:
                self.result = task.result()
                self.result.raise_for_status()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Cancel the run unless it has ended, and wait until it has; without a run, none can begin any more."""
        self._used = self._closed = True
        end, self._end = self._end, None
        try:
            if self._task is not None:
                await cancel_and_wait(self._task)
        finally:
            if end is not None:
                await end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

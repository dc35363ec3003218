"""Event loops: values per loop, cancelling tasks, and running a coroutine from synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from llm_do.errors import UsageError

__all__ = ["PerLoop", "cancel_and_wait", "complete", "is_being_cancelled", "require_event_loop", "run_blocking"]

T = TypeVar("T")

_MOST_ROUNDS = 100
"""How often tasks that a task starts while it is cancelled are cancelled in their turn."""


class PerLoop(Generic[T]):
    """A value for each event loop, created by `make` on first use."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]


def require_event_loop() -> None:
    """Raise `UsageError` unless asyncio runs here; another library, such as trio, may run instead."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "a run needs asyncio's event loop, and none is running here",
            hint="Call `run.sync` or `runtime.run_sync`; under trio, through `trio.to_thread.run_sync`.",
        ) from None


def is_being_cancelled() -> bool:
    """Whether this task is being cancelled; if not, a `CancelledError` comes from something that it awaited."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the unfinished tasks and wait for their end, even if the wait itself is cancelled."""
    cancelled = False
    while unfinished := [task for task in tasks if not task.done()]:
        for task in unfinished:
            task.cancel()
        try:
            await asyncio.wait(unfinished)
        except asyncio.CancelledError:
            cancelled = True
    for task in tasks:
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the code that awaits the task reports it
    if cancelled:
        raise asyncio.CancelledError


async def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.done() and task.cancelled():
                raise
            cancelled = error
        except BaseException:  # noqa: BLE001 (`task.result()` below raises it)
            break
    if cancelled is not None:
        if task.exception() is None:
            raise cancelled
        # Raise the error first; the cancellation comes out of the next await.
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()
            current.cancel()
    return task.result()


def _is_in_loop() -> bool:
    """Whether this code runs in an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_blocking(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine from synchronous code, in a separate thread if a loop is running.

    A keyboard interrupt of the waiting thread cancels the coroutine.
    """
    # Not in an `except` block: what the coroutine raises would have that block's error as its context.
    if not _is_in_loop():
        return asyncio.run(_with_all_it_starts(begin()))
    done: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []
    interrupted = threading.Event()

    async def run() -> T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        if interrupted.is_set():
            raise asyncio.CancelledError
        return await begin()

    def work() -> None:
        try:
            done.set_result(asyncio.run(_with_all_it_starts(run())))
        except BaseException as error:  # noqa: BLE001 (raised in the waiting thread)
            done.set_exception(error)

    context = copy_context()
    thread = threading.Thread(target=lambda: context.run(work), name="llm-do-run", daemon=True)
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        if not done.done():
            interrupted.set()
            for loop, task in running:
                if task is not None:
                    with suppress(RuntimeError):  # its loop has been closed meanwhile
                        loop.call_soon_threadsafe(task.cancel)
            if running or thread.is_alive():  # otherwise it never started
                wait([done])
        raise


async def _with_all_it_starts(work: Coroutine[Any, Any, T]) -> T:
    """Run work, then end the tasks that it has left, and those that they start while they end.

    `asyncio.run` ends only the first of them, and would close the loop before the others have begun.
    """
    try:
        return await work
    finally:
        for _ in range(_MOST_ROUNDS):
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if not left:
                break
            for task in left:
                task.cancel()
            await asyncio.wait(left)

"""Event loops: a value for each, the end of tasks, and running a coroutine from code that isn't async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["PerLoop", "cancel_and_wait", "is_being_cancelled", "run_blocking"]

T = TypeVar("T")


class PerLoop(Generic[T]):
    """A value for each event loop, made when it is first asked for there.

    Args:
        make: Makes one.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """The value of the loop that runs now."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]


def is_being_cancelled() -> bool:
    """Whether this task is being cancelled; else a `CancelledError` is only that of something it has waited for."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs and wait until it has ended, however often the waiting itself is cancelled."""
    again = False
    while unfinished := [task for task in tasks if not task.done()]:
        for task in unfinished:
            task.cancel()
        try:
            await asyncio.wait(unfinished)
        except asyncio.CancelledError:
            again = True
    for task in tasks:
        if not task.cancelled():
            task.exception()  # taken note of: who waits for it tells of it
    if again:
        raise asyncio.CancelledError


def run_blocking(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from code that isn't async, in a thread of its own where a loop is running.

    A keyboard interrupt of the thread that waits ends it there too.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    done: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []
    given_up = threading.Event()

    async def run() -> T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        if given_up.is_set():
            raise asyncio.CancelledError
        return await begin()

    def work() -> None:
        try:
            done.set_result(asyncio.run(run()))
        except BaseException as error:  # noqa: BLE001 (carried to the thread that waits)
            done.set_exception(error)

    context = copy_context()
    thread = threading.Thread(target=lambda: context.run(work), name="llm-do-run", daemon=True)
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        if not done.done():
            given_up.set()
            for loop, task in running:
                if task is not None:
                    with suppress(RuntimeError):  # its loop has been closed since
                        loop.call_soon_threadsafe(task.cancel)
            if running or thread.is_alive():  # else it has not begun, and never will
                wait([done])
        raise

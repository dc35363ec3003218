"""Event loops: a value for each, the end of tasks, and running a coroutine from code that isn't async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["PerLoop", "end_tasks", "run_blocking"]

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


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
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

    Args:
        begin: Makes the coroutine.

    Returns:
        Its result.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(asyncio.run(begin()))
        except BaseException as error:  # noqa: BLE001 (carried to the thread that waits)
            done.set_exception(error)

    threading.Thread(target=work, name="llm-do-run", daemon=True).start()
    return done.result()

"""Worker threads are reused while they are idle, but not by a fork; what is async runs in the event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from llm_do.concurrency.worker_threads import WORKERS, call_function


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system can't fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_fork_of_a_process_with_idle_threads_starts_its_own() -> None:
    for _ in range(3):
        WORKERS.submit(int).result(timeout=30)
        time.sleep(0.01)  # the thread is idle a moment after its result is there

    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(WORKERS.submit(lambda: 7).result())
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7


class Later:
    """A callable object, whose call is async."""

    async def __call__(self) -> threading.Thread:
        return threading.current_thread()


def test_an_object_whose_call_is_async_is_called_in_the_event_loop() -> None:
    assert asyncio.run(call_function(Later())) is threading.main_thread()


def test_a_class_is_called_in_a_worker_thread_also_if_its_objects_are_async() -> None:
    assert isinstance(asyncio.run(call_function(Later)), Later)


def test_a_coroutine_that_an_abandoned_function_returns_is_closed() -> None:
    entered, released = threading.Event(), threading.Event()
    made: list[Coroutine[Any, Any, threading.Thread]] = []

    def begin() -> Coroutine[Any, Any, threading.Thread]:
        entered.set()
        assert released.wait(60)
        made.append(Later()())
        return made[0]

    async def main() -> None:
        calling = asyncio.create_task(call_function(begin))
        assert await asyncio.to_thread(entered.wait, 60)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        released.set()

    asyncio.run(main())

    until = time.monotonic() + 60
    while not made or inspect.getcoroutinestate(made[0]) != inspect.CORO_CLOSED:
        assert time.monotonic() < until
        time.sleep(0.001)

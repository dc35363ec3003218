"""Worker threads for synchronous code: daemon threads, so that a hung tool can't keep a process alive.

A thread can't be stopped: if the call that waits for it is cancelled or times out, the thread is abandoned and its
result discarded.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

__all__ = ["WORKERS", "WorkerThreads", "call_function", "run_in_worker"]

P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads(Executor):
    """An executor that reuses idle threads, and whose busy threads never delay the interpreter's exit.

    It starts a thread whenever none is idle, so that abandoned calls can't starve the others. A thread ends after
    `idle_seconds` without work.
    """

    def __init__(self, idle_seconds: float = 10.0) -> None:
        self._idle_seconds = idle_seconds
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in a worker thread."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except StopIteration as error:
                # A future doesn't accept StopIteration, so the caller would wait forever.
                future.set_exception(RuntimeError(f"StopIteration: {error}"))
            except BaseException as error:  # noqa: BLE001 (raised in the waiting task)
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._lock:
            need_thread = self._idle == 0
            if not need_thread:
                self._idle -= 1
        if need_thread:
            # In a list that the thread empties: a thread keeps its arguments until it ends.
            threading.Thread(target=self._serve, args=([work],), name="llm-do-worker", daemon=True).start()
        else:
            self._work.put(work)
        return future

    def forget_threads(self) -> None:
        """Start over in a fork, which has none of its parent's threads."""
        self._work, self._lock, self._idle = queue.SimpleQueue(), threading.Lock(), 0

    def _serve(self, first: list[Callable[[], None]]) -> None:
        work = first.pop()
        while True:
            work()
            del work
            with self._lock:
                self._idle += 1
            try:
                work = self._work.get(timeout=self._idle_seconds)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return
                # All idle threads have been reserved, so a job for this one is about to arrive.
                work = self._work.get()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: idle threads end by themselves."""


WORKERS: Any = WorkerThreads()
"""The process's worker threads."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget_threads)


async def call_function(function: Callable[..., Any], *args: Any) -> Any:
    """Call a project's function, in a worker thread unless it is async; await the result if it is awaitable."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await function(*args)
    called = WORKERS.submit(contextvars.copy_context().run, function, *args)
    try:
        result = await asyncio.wrap_future(called)
    except asyncio.CancelledError:
        called.add_done_callback(_close_coroutine)
        raise
    return await result if inspect.isawaitable(result) else result


def _close_coroutine(called: Future[Any]) -> None:
    """Close a coroutine that an abandoned call has returned: Python would warn that it was never awaited."""
    if not called.cancelled() and called.exception() is None and inspect.iscoroutine(result := called.result()):
        result.close()


async def run_in_worker(function: Callable[..., T], *args: Any) -> T:
    """Run synchronous code in a worker thread, in a copy of this task's context."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(WORKERS, lambda: context.run(function, *args))

"""Decorators for tools: `retry`, `timeout`, `rate_limit`, `cache_result`.

They work for async functions and for synchronous ones in worker threads. What they remember belongs to the run, or to
the thread of one user; outside of any run they remember nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import TimeoutError as ThreadTimeoutError
from typing import Any, Literal, TypeVar, cast

from pydantic_ai import RunContext

from llm_do.errors import ToolError
from llm_do.runtime.context import CURRENT_CALL, CURRENT_TOOL
from llm_do.runtime.results import to_json_data
from llm_do.runtime.workers import WORKERS
from llm_do.toolkits.state import WORK
from llm_do.tools import Update

__all__ = ["Scope", "cache_result", "rate_limit", "retry", "timeout"]

F = TypeVar("F", bound=Callable[..., Any])
Scope = Literal["run", "thread"]
"""How long something is remembered: as long as the run, or in all runs of the same user's thread."""

_LOCK = threading.Lock()


def retry(
    times: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    delay: float = 0.0,
    factor: float = 2.0,
) -> Callable[[F], F]:
    """Call a tool again when it raised. A `ToolError` is a tool's own answer, and not tried again unless it is named.

    Args:
        times: Most calls in all.
        on: What to try again after.
        delay: Seconds to wait before the second call.
        factor: What each following pause is multiplied by.

    Returns:
        A decorator.

    Example:
        >>> left = [1, 2]
        >>> @retry(3)
        ... def flaky() -> str:
        ...     if left:
        ...         raise ConnectionError(left.pop())
        ...     return "there"
        >>> flaky()
        'there'
    """
    kinds = on if isinstance(on, tuple) else (on,)

    def again(error: Exception, number: int) -> bool:
        meant = not isinstance(error, ToolError) or any(issubclass(kind, ToolError) for kind in kinds)
        return meant and number < times

    def decorate(function: F) -> F:
        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            number = 0
            while True:
                number += 1
                try:
                    return await function(*args, **named)
                except kinds as error:
                    if not again(error, number):
                        raise
                await asyncio.sleep(delay * factor ** (number - 1))

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            number = 0
            while True:
                number += 1
                try:
                    return function(*args, **named)
                except kinds as error:
                    if not again(error, number):
                        raise
                if _pause(delay * factor ** (number - 1), CURRENT_TOOL.get()):
                    raise ToolError("the call was given up while it waited to be tried again")

        return _fitting(function, wait, work)

    return decorate


def timeout(seconds: float) -> Callable[[F], F]:
    """Give up a tool after some time, without signals: a synchronous one goes on in its thread, its result is dropped.

    Args:
        seconds: How long it may take.

    Returns:
        A decorator. What took too long is a `ToolError`.
    """

    def late(function: Callable[..., Any]) -> ToolError:
        return ToolError(f"{function.__name__} timed out after {seconds:g} s")

    def decorate(function: F) -> F:
        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            timer = asyncio.timeout(seconds)
            try:
                async with timer:
                    return await function(*args, **named)
            except TimeoutError as error:
                if not timer.expired():
                    raise
                raise late(function) from error

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            given_up = threading.Event()
            context = contextvars.copy_context()
            context.run(CURRENT_TOOL.set, given_up)
            future = WORKERS.submit(context.run, functools.partial(function, *args, **named))
            try:
                return future.result(seconds)
            except ThreadTimeoutError as error:
                if future.done():
                    raise
                given_up.set()
                raise late(function) from error

        return _fitting(function, wait, work)

    return decorate


def rate_limit(calls: int, per: float, *, scope: Scope = "run") -> Callable[[F], F]:
    """Refuse a tool that was called too often; the model is told when it may try again.

    Args:
        calls: Most calls in a stretch of time.
        per: The stretch, in seconds.
        scope: Whose calls are counted.

    Returns:
        A decorator.
    """

    def decorate(function: F) -> F:
        def count() -> None:
            memory = _memory(scope)
            if memory is None:
                return
            now = time.monotonic()
            with _LOCK:
                seen: deque[float] = memory.setdefault(("rate_limit", function), deque())
                while seen and now - seen[0] >= per:
                    seen.popleft()
                if len(seen) >= calls:
                    wait = per - (now - seen[0])
                    raise ToolError(
                        f"{function.__name__} may be called {calls} times in {per:g} s; try again in {wait:.1f} s"
                    )
                seen.append(now)

        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            count()
            return await function(*args, **named)

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            count()
            return function(*args, **named)

        return _fitting(function, wait, work)

    return decorate


def cache_result(ttl: float | None = None, *, scope: Scope = "run", max_entries: int = 256) -> Callable[[F], F]:
    """Remember what a tool returned for the same arguments, and for the same context where it takes `ctx`.

    Failures aren't remembered: neither what it raised nor an `Update.failed`.

    Args:
        ttl: Seconds a result is remembered; None is as long as the scope.
        scope: Where it is remembered.
        max_entries: Most results of this tool; the oldest ones go first.

    Returns:
        A decorator.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        def entry(args: tuple[Any, ...], named: Mapping[str, Any]) -> _Entry | None:
            memory = _memory(scope)
            if memory is None:
                return None
            with _LOCK:
                results: dict[str, tuple[float, object, Any]] = memory.setdefault(("cache_result", function), {})
            return _Entry(results, signature.bind(*args, **named).arguments, ttl, max_entries)

        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            known = entry(args, named)
            if known is None:
                return await function(*args, **named)
            return known.value() if known.found() else known.keep(await function(*args, **named))

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            known = entry(args, named)
            if known is None:
                return function(*args, **named)
            return known.value() if known.found() else known.keep(function(*args, **named))

        return _fitting(function, wait, work)

    return decorate


class _Entry:
    """One call's place among the remembered results of its tool."""

    def __init__(
        self,
        results: dict[str, tuple[float, object, Any]],
        arguments: Mapping[str, Any],
        ttl: float | None,
        max_entries: int,
    ) -> None:
        self._results = results
        self._ttl = ttl
        self._max = max_entries
        plain = {name: value for name, value in arguments.items() if not isinstance(value, RunContext)}
        self._key = json.dumps(to_json_data(plain), sort_keys=True)
        work = WORK.get()
        # Held, not only compared: an identity is one only as long as the object lives.
        self._data = work[-1].context.data if work and len(plain) < len(arguments) else None
        self._kept: tuple[float, object, Any] | None = None

    def found(self) -> bool:
        """Whether there is a result that is still good."""
        with _LOCK:
            self._kept = self._results.get(self._key)
        if self._kept is None or self._kept[1] is not self._data:
            return False
        return self._ttl is None or time.monotonic() - self._kept[0] < self._ttl

    def value(self) -> Any:
        """The result that was found."""
        assert self._kept is not None
        return self._kept[2]

    def keep(self, value: Any) -> Any:
        """Remember a result."""
        if isinstance(value, Update) and value.failure is not None:
            return value
        with _LOCK:
            self._results.pop(self._key, None)
            self._results[self._key] = (time.monotonic(), self._data, value)
            while len(self._results) > self._max:
                del self._results[next(iter(self._results))]
        return value


def _fitting(function: F, wait: Callable[..., Any], work: Callable[..., Any]) -> F:
    """The wrapper that is as the function is: async or not."""
    return cast("F", wait if inspect.iscoroutinefunction(function) else work)


def _memory(scope: Scope) -> MutableMapping[Any, Any] | None:
    """What is remembered for the run, or for the thread of its user; None outside of any run."""
    call = CURRENT_CALL.get(None)
    if call is None:
        return None
    if scope == "run" or call.thread_id is None:
        return call.run.memory
    return call.runtime.shared.thread_memory(call.user_id, call.thread_id)


def _pause(seconds: float, given_up: threading.Event | None) -> bool:
    """Wait in a worker thread; whether the call was given up meanwhile."""
    if given_up is not None:
        return given_up.wait(seconds)
    time.sleep(seconds)
    return False

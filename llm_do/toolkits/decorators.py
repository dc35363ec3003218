"""Decorators for tools: `retry`, `timeout`, `rate_limit`, `cache_result`.

They work for async functions and for synchronous ones in worker threads. Where they remember what they do is
`llm_do.toolkits.remembered_values`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as ThreadTimeoutError
from typing import Any, TypeVar, cast, get_args

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed

from llm_do.concurrency.worker_threads import WORKERS
from llm_do.errors import ToolError, ToolkitError
from llm_do.runtime.context.call_context import CURRENT_TOOL
from llm_do.toolkits.remembered_values import LOCK, RememberedCall, Scope, remembered_in

__all__ = ["Scope", "cache_result", "rate_limit", "retry", "timeout"]

F = TypeVar("F", bound=Callable[..., Any])

_ANSWERS = (ToolError, ModelRetry, ToolFailed, ApprovalRequired, CallDeferred)
"""What a tool raises on purpose."""

_LOOK = 0.05
"""Seconds between two looks at whether a call was given up, where two events say so."""


def retry(
    times: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    delay: float = 0.0,
    factor: float = 2.0,
) -> Callable[[F], F]:
    """Call a tool again when it raised.

    What a tool says on purpose (`ToolError`, PydanticAI's `ModelRetry`, `ApprovalRequired` and the like) is not tried
    again unless it is named.

    Args:
        times: Most calls in all.
        on: What to try again after.
        delay: Seconds to wait before the second call.
        factor: What each following pause is multiplied by.

    Returns:
        A decorator.

    Raises:
        ToolkitError: A number is out of its range.

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
    _demand(_is_count(times), "`times` of retry is a whole number of at least 1", times)
    _demand(_is_number(delay) and delay >= 0, "`delay` of retry is a number of seconds of at least 0", delay)
    _demand(_is_number(factor) and factor >= 0, "`factor` of retry is a number of at least 0", factor)
    kinds = on if isinstance(on, tuple) else (on,)
    _demand(all(map(_is_exception, kinds)), "`on` of retry is an exception class or a tuple of such", on)

    def again(error: Exception, number: int) -> bool:
        named = any(isinstance(error, kind) and issubclass(kind, _ANSWERS) for kind in kinds)
        return number < times and (named or not isinstance(error, _ANSWERS))

    def decorate(function: F) -> F:
        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            number, pause = 0, float(delay)
            while True:
                number += 1
                try:
                    return await function(*args, **named)
                except kinds as error:
                    if not again(error, number):
                        raise
                await asyncio.sleep(pause)
                pause *= factor

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            number, pause = 0, float(delay)
            while True:
                number += 1
                try:
                    return function(*args, **named)
                except kinds as error:
                    if not again(error, number):
                        raise
                if _pause(pause, CURRENT_TOOL.get()):
                    raise ToolError("the call was given up while it waited to be tried again")
                pause *= factor

        _demand_results("retry", function)
        return _fitting(function, wait, work)

    return decorate


def timeout(seconds: float) -> Callable[[F], F]:
    """Give up a tool after some time, without signals: a synchronous one goes on in its thread, its result is dropped.

    Args:
        seconds: How long it may take.

    Returns:
        A decorator. What took too long is a `ToolError`.

    Raises:
        ToolkitError: It is no number above 0.
    """
    _demand(_is_number(seconds) and seconds > 0, "`seconds` of timeout is a number above 0", seconds)

    def late(function: Callable[..., Any]) -> ToolError:
        return ToolError(f"{_name(function)} timed out after {seconds:g} s")

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
            given_up = _GivenUp(CURRENT_TOOL.get())
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

        _demand_results("timeout", function)
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

    Raises:
        ToolkitError: A number is out of its range, or there is no such scope.
    """
    _demand(_is_count(calls), "`calls` of rate_limit is a whole number of at least 1", calls)
    _demand(_is_number(per) and per > 0, "`per` of rate_limit is a number of seconds above 0", per)
    _demand(scope in get_args(Scope), "`scope` of rate_limit is 'run' or 'thread'", scope)

    def decorate(function: F) -> F:
        mark = object()

        def count() -> None:
            memory = remembered_in(scope)
            if memory is None:
                return
            now = time.monotonic()
            with LOCK:
                seen: deque[float] = memory.setdefault(mark, deque())
                while seen and now - seen[0] >= per:
                    seen.popleft()
                if len(seen) >= calls:
                    wait = per - (now - seen[0])
                    raise ToolError(
                        f"{_name(function)} may be called {calls} times in {per:g} s; try again in {wait:.1f} s"
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

    Failures aren't remembered, neither what it raised nor an `Update.failed`; nor are iterators, which are read once.

    Args:
        ttl: Seconds a result is remembered; None is as long as the scope.
        scope: Where it is remembered.
        max_entries: Most results of this tool; the oldest ones go first.

    Returns:
        A decorator.

    Raises:
        ToolkitError: A number is out of its range, or there is no such scope.
    """
    in_time = ttl is None or (_is_number(ttl) and ttl >= 0)
    _demand(in_time, "`ttl` of cache_result is a number of seconds of at least 0, or None", ttl)
    _demand(_is_count(max_entries), "`max_entries` of cache_result is a whole number of at least 1", max_entries)
    _demand(scope in get_args(Scope), "`scope` of cache_result is 'run' or 'thread'", scope)

    def decorate(function: F) -> F:
        mark = object()
        signature = inspect.signature(function)

        def entry(args: tuple[Any, ...], named: Mapping[str, Any]) -> RememberedCall | None:
            memory = remembered_in(scope)
            if memory is None:
                return None
            with LOCK:
                results: dict[str, tuple[float, object, Any]] = memory.setdefault(mark, {})
            return RememberedCall(results, signature.bind(*args, **named).arguments, ttl, max_entries)

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

        _demand_results("cache_result", function)
        return _fitting(function, wait, work)

    return decorate


class _GivenUp(threading.Event):
    """Set once a part of a tool call has been given up, or the whole call.

    Args:
        whole: Set once the whole call has been given up; None where there is no such call.
    """

    def __init__(self, whole: threading.Event | None) -> None:
        super().__init__()
        self._whole = whole

    def is_set(self) -> bool:
        return super().is_set() or (self._whole is not None and self._whole.is_set())

    def wait(self, timeout: float | None = None) -> bool:
        if self._whole is None:
            return super().wait(timeout)
        ends = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = _LOOK if ends is None else ends - time.monotonic()
            if left <= 0:
                return False
            super().wait(min(left, _LOOK))
        return True


def _demand(fits: bool, what: str, value: object) -> None:
    """See that an argument of a decorator is what it has to be."""
    if not fits:
        hint = "Write the decorator with parentheses." if callable(value) else None
        raise ToolkitError(f"{what}, not {value!r}", hint=hint)


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "the tool")


def _demand_results(decorator: str, function: Callable[..., Any]) -> None:
    """See that a function gives its result when it is called."""
    own = inspect.unwrap(function)
    if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
        raise ToolkitError(f"{decorator} can't be used on a generator: {_name(function)}", hint="Return a list.")


def _fitting(function: F, wait: Callable[..., Any], work: Callable[..., Any]) -> F:
    """The wrapper that is as the function is: async or not."""
    return cast("F", wait if inspect.iscoroutinefunction(function) else work)


def _pause(seconds: float, given_up: threading.Event | None) -> bool:
    """Wait in a worker thread; whether the call was given up meanwhile."""
    if given_up is not None:
        return given_up.wait(seconds)
    time.sleep(seconds)
    return False

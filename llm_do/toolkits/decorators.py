"""Decorators for tools: `retry`, `timeout`, `rate_limit`, `cache_result`.

They work for async functions, and for synchronous ones in worker threads. What they remember is kept in
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
from llm_do.runtime.tools.current_tool import CURRENT_TOOL
from llm_do.toolkits.remembered_values import LOCK, RememberedCall, Scope, remembered_in

__all__ = ["Scope", "cache_result", "rate_limit", "retry", "timeout"]

F = TypeVar("F", bound=Callable[..., Any])

_DELIBERATE = (ToolError, ModelRetry, ToolFailed, ApprovalRequired, CallDeferred)
"""What a tool raises on purpose."""

_POLL_SECONDS = 0.05
"""Seconds between two checks whether a call was abandoned, where that is known from two events."""


def retry(
    times: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    delay: float = 0.0,
    factor: float = 2.0,
) -> Callable[[F], F]:
    """Call a tool again when it raises.

    What a tool raises on purpose (`ToolError`, PydanticAI's `ModelRetry`, `ApprovalRequired` and the like) is not
    retried unless `on` names it.

    Args:
        times: How often it is called at most.
        on: The exceptions after which it is called again.
        delay: Seconds to wait before the second call.
        factor: Each further pause is longer by this factor.

    Returns:
        A decorator.

    Raises:
        ToolkitError: A number is out of range.

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
    _require(_is_count(times), "`times` of retry is a whole number of at least 1", times)
    _require(_is_number(delay) and delay >= 0, "`delay` of retry is a number of seconds of at least 0", delay)
    _require(_is_number(factor) and factor >= 0, "`factor` of retry is a number of at least 0", factor)
    kinds = on if isinstance(on, tuple) else (on,)
    _require(all(map(_is_exception, kinds)), "`on` of retry is an exception class or a tuple of them", on)

    def is_retried(error: Exception, number: int) -> bool:
        named = any(isinstance(error, kind) and issubclass(kind, _DELIBERATE) for kind in kinds)
        return number < times and (named or not isinstance(error, _DELIBERATE))

    def decorate(function: F) -> F:
        @functools.wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            number, pause = 0, float(delay)
            while True:
                number += 1
                try:
                    return await function(*args, **named)
                except kinds as error:
                    if not is_retried(error, number):
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
                    if not is_retried(error, number):
                        raise
                if _pause(pause, CURRENT_TOOL.get()):
                    raise ToolError("the call was abandoned while it waited to be retried")
                pause *= factor

        _require_result("retry", function)
        return _matching(function, wait, work)

    return decorate


def timeout(seconds: float) -> Callable[[F], F]:
    """Abandon a tool after some time. No signals are used: a synchronous one continues in its thread, without a result.

    Args:
        seconds: How long it may take.

    Returns:
        A decorator. A call that takes too long raises `ToolError`.

    Raises:
        ToolkitError: It isn't a number above 0.
    """
    _require(_is_number(seconds) and seconds > 0, "`seconds` of timeout is a number above 0", seconds)

    def timed_out(function: Callable[..., Any]) -> ToolError:
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
                raise timed_out(function) from error

        @functools.wraps(function)
        def work(*args: Any, **named: Any) -> Any:
            abandoned = _AbandonEvent(CURRENT_TOOL.get())
            context = contextvars.copy_context()
            context.run(CURRENT_TOOL.set, abandoned)
            future = WORKERS.submit(context.run, functools.partial(function, *args, **named))
            try:
                return future.result(seconds)
            except ThreadTimeoutError as error:
                if future.done():
                    raise
                abandoned.set()
                raise timed_out(function) from error

        _require_result("timeout", function)
        return _matching(function, wait, work)

    return decorate


def rate_limit(calls: int, per: float, *, scope: Scope = "run") -> Callable[[F], F]:
    """Refuse calls of a tool that are too frequent; the model reads when it may try again.

    Args:
        calls: How many calls are allowed in a period.
        per: The period, in seconds.
        scope: Whether the calls of a run or of a thread are counted.

    Returns:
        A decorator.

    Raises:
        ToolkitError: A number is out of range, or the scope is unknown.
    """
    _require(_is_count(calls), "`calls` of rate_limit is a whole number of at least 1", calls)
    _require(_is_number(per) and per > 0, "`per` of rate_limit is a number of seconds above 0", per)
    _require(scope in get_args(Scope), "`scope` of rate_limit is 'run' or 'thread'", scope)

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

        return _matching(function, wait, work)

    return decorate


def cache_result(ttl: float | None = None, *, scope: Scope = "run", max_entries: int = 256) -> Callable[[F], F]:
    """Remember what a tool returned for the same arguments, and for the same context where it takes `ctx`.

    Exceptions and `Update.failed` aren't remembered; nor are iterators, which can be read only once.

    Args:
        ttl: Seconds for which a result is remembered; None for as long as the scope lasts.
        scope: Where it is remembered.
        max_entries: How many results of this tool are kept; the oldest are dropped first.

    Returns:
        A decorator.

    Raises:
        ToolkitError: A number is out of range, or the scope is unknown.
    """
    in_time = ttl is None or (_is_number(ttl) and ttl >= 0)
    _require(in_time, "`ttl` of cache_result is a number of seconds of at least 0, or None", ttl)
    _require(_is_count(max_entries), "`max_entries` of cache_result is a whole number of at least 1", max_entries)
    _require(scope in get_args(Scope), "`scope` of cache_result is 'run' or 'thread'", scope)

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

        _require_result("cache_result", function)
        return _matching(function, wait, work)

    return decorate


class _AbandonEvent(threading.Event):
    """Set once a decorated function has been abandoned, or the tool call that it is a part of.

    Args:
        call: Set once the tool call has been abandoned; None outside a tool call.
    """

    def __init__(self, call: threading.Event | None) -> None:
        super().__init__()
        self._call = call

    def is_set(self) -> bool:
        return super().is_set() or (self._call is not None and self._call.is_set())

    def wait(self, timeout: float | None = None) -> bool:
        if self._call is None:
            return super().wait(timeout)
        ends = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = _POLL_SECONDS if ends is None else ends - time.monotonic()
            if left <= 0:
                return False
            super().wait(min(left, _POLL_SECONDS))
        return True


def _require(valid: bool, what: str, value: object) -> None:
    """Raise `ToolkitError` if an argument of a decorator isn't valid."""
    if not valid:
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


def _require_result(decorator: str, function: Callable[..., Any]) -> None:
    """Raise `ToolkitError` if a function is a generator, which gives its result later than it is called."""
    own = inspect.unwrap(function)
    if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
        raise ToolkitError(f"{decorator} can't be used on a generator: {_name(function)}", hint="Return a list.")


def _matching(function: F, wait: Callable[..., Any], work: Callable[..., Any]) -> F:
    """The wrapper that is async if the function is."""
    return cast("F", wait if inspect.iscoroutinefunction(function) else work)


def _pause(seconds: float, abandoned: threading.Event | None) -> bool:
    """Wait in a worker thread, and return whether the call was abandoned meanwhile."""
    if abandoned is not None:
        return abandoned.wait(seconds)
    time.sleep(seconds)
    return False

"""Results that are iterators: generators and other iterators become lists, and infinite ones are cut off.

No other part of the runtime may touch a project's iterator: iterating over it runs the project's code.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic_ai.messages import ToolReturn

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import ToolError
from llm_do.runtime.tools.current_tool import CURRENT_TOOL
from llm_do.text.large_data.conversion import is_large
from llm_do.text.output_text import output_text
from llm_do.tools import Update

__all__ = ["UNLIMITED_ITEMS", "collect_items"]

UNLIMITED_ITEMS = sys.maxsize
"""The limit for results returned to Python code, which is trusted and must get all or nothing."""

MAX_ITEMS = 1024 * 1024
"""Bytes to take from an iterator, unless the limit on results is higher."""

_PLAIN = (str, bytes, int, float, type(None))
_CHECK_INTERVAL = 100
"""Items of an asynchronous iterator between two checks whether the call has been abandoned."""


async def collect_items(value: Any, limit: int) -> Any:
    """Return a tool's result with lists in place of iterators, or unchanged if there are none.

    Iterators run as the tool does: synchronous ones in a worker thread, all within the call's timeout.
    """
    try:
        if isinstance(value, _PLAIN):
            return value
        large = is_large((value.result, value.updates) if isinstance(value, Update) else value)
        contains = await run_in_worker(_contains_iterator, value, set()) if large else None
        if contains is False or (contains is None and not _contains_iterator(value, set())):
            return value
    except RecursionError:  # nested too deeply to serialize, which serializing it will report
        return value
    return await _drain(value, max(limit, MAX_ITEMS))


def _contains_iterator(value: object, seen: set[int]) -> bool:
    if isinstance(value, _PLAIN) or id(value) in seen:
        return False
    if isinstance(value, Iterator | AsyncIterator):
        return True
    seen.add(id(value))
    if isinstance(value, ToolReturn):
        return _contains_iterator(cast("ToolReturn[Any]", value).return_value, seen)
    if isinstance(value, Update):
        return _contains_iterator(value.result, seen) or _contains_iterator(value.updates, seen)
    if isinstance(value, dict | list | tuple):
        parts = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        return any(not isinstance(item, _PLAIN) and _contains_iterator(item, seen) for item in parts)
    for name, item in _fields(value).items():
        if _contains_iterator(item, seen):
            what = f"`{name}` of the {type(value).__name__} that it returned is an iterator"
            raise ToolError(what, hint="Return a list there.")
    return False


def _fields(value: object) -> Mapping[str, object]:
    """Return the fields of a record that have values."""
    kind: Any = type(value)
    names: Any = getattr(kind, "model_fields", None)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    if not isinstance(names, list | dict):
        return {}
    return {name: getattr(value, name, None) for name in cast("list[str]", names)}


async def _drain(value: Any, limit: int) -> Any:
    if isinstance(value, AsyncIterator):
        return await _collect_async(cast("AsyncIterator[Any]", value), limit)
    if isinstance(value, Iterator):
        return await run_in_worker(_collect, cast("Iterator[Any]", value), limit)
    if not _contains_iterator(value, set()):
        return value
    if isinstance(value, ToolReturn):
        returned = cast("ToolReturn[Any]", value)
        return dataclasses.replace(returned, return_value=await _drain(returned.return_value, limit))
    if isinstance(value, Update):
        return Update(await _drain(value.result, limit), **await _drain(value.updates, limit))
    if isinstance(value, dict):
        return {key: await _drain(item, limit) for key, item in cast("dict[Any, Any]", value).items()}
    items = [await _drain(item, limit) for item in value]
    return items if isinstance(value, list) else tuple(items)


class _ItemBuffer:
    """The items of one iterator, up to a size limit."""

    def __init__(self, limit: int) -> None:
        self.items: list[Any] = []
        self._limit = limit
        self._left = limit

    def add(self, item: Any) -> bool:
        """Add an item and return whether there was room for it."""
        if not isinstance(item, _PLAIN) and _contains_iterator(item, set()):
            raise ToolError("it returned an iterator of iterators", hint="Return a list of lists.")
        self._left -= len(output_text(item)) + 2
        if self._left < 0:
            self.items.append(f"[... more than {self._limit} bytes; the rest was left out ...]")
            return False
        self.items.append(item)
        return True


def _collect(iterator: Iterator[Any], limit: int) -> list[Any]:
    """Collect the items of a synchronous iterator, stopping when the call has been abandoned."""
    taken, abandoned = _ItemBuffer(limit), CURRENT_TOOL.get()
    for item in iterator:
        if not taken.add(item) or (abandoned is not None and abandoned.is_set()):
            close: Callable[[], object] | None = getattr(iterator, "close", None)
            if close is not None:
                with suppress(Exception):
                    close()
            break
    return taken.items


async def _collect_async(iterator: AsyncIterator[Any], limit: int) -> list[Any]:
    taken = _ItemBuffer(limit)
    async for item in iterator:
        if not taken.add(item):
            close = getattr(iterator, "aclose", None)
            if close is not None:
                with suppress(Exception):
                    await close()
            break
        if len(taken.items) % _CHECK_INTERVAL == 0:
            await asyncio.sleep(0)
    return taken.items

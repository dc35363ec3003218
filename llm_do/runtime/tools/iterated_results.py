"""Results that come piece by piece: generators and other iterators become lists, and one without an end does no harm.

Nothing else of the runtime may meet an iterator of a project's: going through it runs the project's code.
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
from llm_do.runtime.record.results import output_text
from llm_do.runtime.tools.current_tool import CURRENT_TOOL
from llm_do.tools import Update

__all__ = ["UNLIMITED_ITEMS", "collect_items"]

UNLIMITED_ITEMS = sys.maxsize
"""The limit of what Python code is given: it is trusted, and has to get all or nothing."""

MAX_ITEMS = 1024 * 1024
"""Bytes that are taken of an iterator, or what a result may have where that is more."""

_PLAIN = (str, bytes, int, float, type(None))
_A_WHILE = 100
"""Items of an asynchronous iterator between two looks at whether the call has been given up."""


async def collect_items(value: Any, limit: int) -> Any:
    """A tool's result with lists in the place of iterators; itself where there are none.

    Iterators run as the tool does: synchronous ones in a worker thread, all within the call's time.
    """
    try:
        if isinstance(value, _PLAIN) or not _holds_iterator(value, set()):
            return value
    except RecursionError:  # nested too deeply to be told at all, as whoever tells it will say
        return value
    return await _drained(value, max(limit, MAX_ITEMS))


def _holds_iterator(value: object, seen: set[int]) -> bool:
    if isinstance(value, _PLAIN) or id(value) in seen:
        return False
    if isinstance(value, Iterator | AsyncIterator):
        return True
    seen.add(id(value))
    if isinstance(value, ToolReturn):
        return _holds_iterator(cast("ToolReturn[Any]", value).return_value, seen)
    if isinstance(value, Update):
        return _holds_iterator(value.result, seen) or _holds_iterator(value.updates, seen)
    if isinstance(value, dict):
        return any(_holds_iterator(item, seen) for item in cast("dict[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        return any(_holds_iterator(item, seen) for item in cast("list[Any]", value))
    for name, item in _fields(value).items():
        if _holds_iterator(item, seen):
            what = f"`{name}` of the {type(value).__name__} that it returned is an iterator"
            raise ToolError(what, hint="Return a list there.")
    return False


def _fields(value: object) -> Mapping[str, object]:
    """The fields of a record, as far as they have values."""
    kind: Any = type(value)
    names: Any = getattr(kind, "model_fields", None)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    if not isinstance(names, list | dict):
        return {}
    return {name: getattr(value, name, None) for name in cast("list[str]", names)}


async def _drained(value: Any, limit: int) -> Any:
    if isinstance(value, AsyncIterator):
        return await _async_items(cast("AsyncIterator[Any]", value), limit)
    if isinstance(value, Iterator):
        return await run_in_worker(_items, cast("Iterator[Any]", value), limit)
    if not _holds_iterator(value, set()):
        return value
    if isinstance(value, ToolReturn):
        returned = cast("ToolReturn[Any]", value)
        return dataclasses.replace(returned, return_value=await _drained(returned.return_value, limit))
    if isinstance(value, Update):
        return Update(await _drained(value.result, limit), **await _drained(value.updates, limit))
    if isinstance(value, dict):
        return {key: await _drained(item, limit) for key, item in cast("dict[Any, Any]", value).items()}
    items = [await _drained(item, limit) for item in value]
    return items if isinstance(value, list) else tuple(items)


class _Taken:
    """The items of one iterator, as many as there is room for."""

    def __init__(self, limit: int) -> None:
        self.items: list[Any] = []
        self._limit = limit
        self._left = limit

    def add(self, item: Any) -> bool:
        """Keep an item; whether there was room for it."""
        if not isinstance(item, _PLAIN) and _holds_iterator(item, set()):
            raise ToolError("it returned an iterator of iterators", hint="Return a list of lists.")
        self._left -= len(output_text(item)) + 2
        if self._left < 0:
            self.items.append(f"[... more than {self._limit} bytes; what came after was left out ...]")
            return False
        self.items.append(item)
        return True


def _items(iterator: Iterator[Any], limit: int) -> list[Any]:
    """What a synchronous iterator gives; nobody waits for more once the call was given up."""
    taken, given_up = _Taken(limit), CURRENT_TOOL.get()
    for item in iterator:
        if not taken.add(item) or (given_up is not None and given_up.is_set()):
            close: Callable[[], object] | None = getattr(iterator, "close", None)
            if close is not None:
                with suppress(Exception):
                    close()
            break
    return taken.items


async def _async_items(iterator: AsyncIterator[Any], limit: int) -> list[Any]:
    taken = _Taken(limit)
    async for item in iterator:
        if not taken.add(item):
            close = getattr(iterator, "aclose", None)
            if close is not None:
                with suppress(Exception):
                    await close()
            break
        if len(taken.items) % _A_WHILE == 0:
            await asyncio.sleep(0)
    return taken.items

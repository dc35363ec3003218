"""Large values that a project passes on, handled in worker threads, so that the event loop comes round for others."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from llm_do.concurrency.worker_threads import WORKERS, run_in_worker
from llm_do.text.json_data import to_json_data
from llm_do.text.large_data.conversion import is_large, large_json_data
from llm_do.text.large_data.record_fields import field_values

__all__ = ["json_data", "let_go"]

_MANY = 1_000
"""Parts of which each is too small to be looked at."""

_FREED = 100
"""Parts that are freed in one go."""


async def json_data(value: Any, *, strict: bool = False) -> Any:
    """Return `to_json_data(value)`; that of a large value is made in a worker thread."""
    if is_large(value):
        return await run_in_worker(partial(large_json_data, value, strict=strict))
    return to_json_data(value, strict=strict)


def let_go(held: list[Any]) -> None:
    """Free a large value in parts, in a worker thread; freeing it in one go would hold up all threads.

    Args:
        held: A list with the value, which nothing else of ours refers to. What the project's code still refers to
            stays as it is.
    """
    with suppress(RuntimeError):  # where no thread can be started, it is freed in one go
        WORKERS.submit(_take_apart, held)


def _take_apart(held: list[Any]) -> None:
    while held:
        value = held.pop()
        if not is_large(value):
            continue
        parts = list(field_values(value) or ())
        del value  # its parts are still held
        if len(parts) <= _MANY:
            held.extend(parts)
        while parts:
            del parts[-_FREED:]

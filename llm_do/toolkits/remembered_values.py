"""What the decorators of tools remember: for the run, or for one user's thread. Outside a run they remember nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, MutableMapping
from typing import Any, Literal

from pydantic_ai import RunContext

from llm_do.machines.tool_gate import OPEN_TRANSACTIONS
from llm_do.runtime.context.call_context import CURRENT_CALL
from llm_do.text.json_data import to_json_data
from llm_do.tools import Update

__all__ = ["LOCK", "RememberedCall", "Scope", "remembered_in"]

Scope = Literal["run", "thread"]
"""How long something is remembered: for the run, or for all runs of the same user's thread."""

LOCK = threading.Lock()
"""Held while remembered values are read and changed, since tools run in worker threads."""


def remembered_in(scope: Scope) -> MutableMapping[Any, Any] | None:
    """What is remembered for the run, or for its user's thread; None outside a run."""
    call = CURRENT_CALL.get(None)
    if call is None:
        return None
    if scope == "run" or call.thread_id is None:
        return call.run.memory
    return call.runtime.shared.thread_memory(call.user_id, call.thread_id)


class RememberedCall:
    """The remembered result of one call, if there is one.

    Args:
        results: The tool's results by arguments: the time, the context, and the result.
        arguments: The call's arguments.
        ttl: Seconds for which a result is valid; None for no limit.
        max_entries: Most results.
    """

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
        transactions = OPEN_TRANSACTIONS.get()
        # Kept, not only compared: an identity is unique only as long as the object lives.
        self._data = transactions[-1].context.data if transactions and len(plain) < len(arguments) else None
        self._kept: tuple[float, object, Any] | None = None

    def found(self) -> bool:
        """Whether there is a result that is still valid."""
        with LOCK:
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
        if isinstance(value.result if isinstance(value, Update) else value, Iterator | AsyncIterator | Awaitable):
            return value
        with LOCK:
            self._results.pop(self._key, None)
            self._results[self._key] = (time.monotonic(), self._data, value)
            while len(self._results) > self._max:
                del self._results[next(iter(self._results))]
        return value

"""`StateManager`: the configuration and the state of threads, for code outside a run.

Inside a run, `ctx.thread` is the thread and saves itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from llm_do.errors import ThreadConflict, UsageError
from llm_do.runtime.record.recording import AgentState, ThreadConfig
from llm_do.runtime.record.stored_records import ThreadContext, ThreadRecord, new_thread
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.threads.store.codec import same_json, state_text
from llm_do.threads.store.thread_settings import check_new_config, config_data, config_from_data

__all__ = ["StateManager", "config_key"]

T = TypeVar("T")

LOADED = 1000
"""Threads whose loaded states a manager remembers, those used last: it may live as long as a service."""

_RENAMED = {"reasoning.model": "model", "reasoning.params": "model_settings"}


def config_key(key: str) -> str:
    """The dotted name of a setting by the name it has here.

    Example:
        >>> config_key("reasoning.params.temperature")
        'model_settings.temperature'
    """
    for old, new in _RENAMED.items():
        if key == old or key.startswith(f"{old}."):
            return new + key[len(old) :]
    return key


class StateManager:
    """Reads and writes configurations and states.

    Args:
        store: Where threads are kept.
        user_id: Whose threads; those of others don't exist here.

    Example:
        >>> import asyncio
        >>> from llm_do.threads import memory_store
        >>> manager = StateManager(memory_store())
        >>> async def example():
        ...     await manager.set_thread_config("t", {"model_settings": {"temperature": 0.2}})
        ...     return await manager.get_thread_config_value("t", "model_settings.temperature")
        >>> asyncio.run(example())
        0.2
    """

    def __init__(self, store: ThreadStore, user_id: str | None = None) -> None:
        self._store = store
        self._user = user_id
        self._loaded: dict[str, tuple[ThreadRecord, AgentState]] = {}
        self._forgot = False

    async def load_thread_context(self, thread_id: str) -> ThreadContext:
        """A thread's configuration and state; those of a new thread where there is none.

        Args:
            thread_id: The thread.

        Returns:
            Both. The state is a copy of the caller's own: it may be changed, and saved by `save_state_if_modified`.
        """
        record = await self._record(thread_id)
        self._remember(record, record.state)
        return ThreadContext(record.config, record.state)

    async def get_thread_config_value(self, thread_id: str, key: str, default: T | None = None) -> Any | T | None:
        """One value of a thread's configuration.

        Args:
            thread_id: The thread.
            key: Its dotted name, such as `model_settings.temperature`.
            default: What is given where it isn't set.
        """
        record = await self._record(thread_id)
        value: Any = config_data(record.config)
        for name in config_key(key).split("."):
            if not isinstance(value, Mapping) or name not in value:
                return default
            value = value[name]  # pyright: ignore[reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    async def is_tool_enabled(self, thread_id: str, tool: str) -> bool:
        """Whether a tool may be seen and called on a thread, as far as the thread has a say in it."""
        return (await self._record(thread_id)).config.is_tool_enabled(tool)

    async def set_thread_config(self, thread_id: str, config: ThreadConfig | Mapping[str, Any]) -> ThreadConfig:
        """Set values of a thread's configuration; the thread is made if there is none.

        Args:
            thread_id: The thread.
            config: A whole configuration; or single values, of which null takes the thread's away.

        Returns:
            The configuration now.

        Raises:
            UsageError: A value doesn't fit.
        """
        check_new_config(config_data(config) if isinstance(config, ThreadConfig) else config)
        while True:
            record = await self._record(thread_id)
            new = (
                config
                if isinstance(config, ThreadConfig)
                else config_from_data({**config_data(record.config), **config})
            )
            try:
                await self._store.save_thread(replace(record, config=new), expected=record.revision or None)
            except ThreadConflict:
                continue
            return new

    async def save_state_if_modified(self, thread_id: str) -> bool:
        """Save the state that `load_thread_context` gave, if it has another value now.

        Args:
            thread_id: The thread.

        Returns:
            Whether it was saved.

        Raises:
            ThreadConflict: Somebody else has continued the thread since it was loaded.
            ToolError: The state isn't JSON data.
            UsageError: A thousand other threads were loaded since, so that nobody knows what it was.
        """
        if thread_id not in self._loaded:
            if not self._forgot:
                return False
            raise UsageError(
                f"the state of thread {thread_id!r} isn't known any more: {LOADED} others were loaded since",
                hint="Load it again, change the state again, and save it before going on to other threads.",
            )
        record, state = self._loaded[thread_id]
        now = await self._record(thread_id)
        if now.turn != record.turn:
            raise ThreadConflict(
                f"thread {thread_id!r} was continued meanwhile", hint="Load it again, and change the state again."
            )
        state_text(state, f"thread {thread_id!r}")  # says whose it is where it isn't JSON data
        if same_json(now.state, state):
            return False
        saved = await self._store.save_thread(replace(now, state=state), expected=now.revision or None)
        self._remember(saved, state)
        return True

    def _remember(self, record: ThreadRecord, state: AgentState) -> None:
        self._loaded.pop(record.id, None)
        self._loaded[record.id] = record, state
        while len(self._loaded) > LOADED:
            del self._loaded[next(iter(self._loaded))]
            self._forgot = True

    async def _record(self, thread_id: str) -> ThreadRecord:
        found = await self._store.thread(thread_id, self._user)
        return found if found is not None else new_thread(thread_id, self._user)

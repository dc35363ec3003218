"""`StateManager`: the configuration and state of threads, for code outside a run.

Code inside a run uses `ctx.thread`, which is saved with the run.
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
"""The number of loaded threads that a manager remembers; bounded because a manager may live as long as a service."""

_RENAMED = {"reasoning.model": "model", "reasoning.params": "model_settings"}


def config_key(key: str) -> str:
    """Translate the dotted name of a setting from earlier versions to the current one.

    Example:
        >>> config_key("reasoning.params.temperature")
        'model_settings.temperature'
    """
    for old, new in _RENAMED.items():
        if key == old or key.startswith(f"{old}."):
            return new + key[len(old) :]
    return key


class StateManager:
    """Reads and writes the configurations and states of threads.

    Args:
        store: The store to use.
        user_id: The user whose threads to access; other users' threads are invisible.

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
        """Load a thread's configuration and state; for an unknown thread, those of a new one.

        Args:
            thread_id: The thread.

        Returns:
            Both. The state is a copy: change it, then save it with `save_state_if_modified`.
        """
        record = await self._record(thread_id)
        self._remember(record, record.state)
        return ThreadContext(record.config, record.state)

    async def get_thread_config_value(self, thread_id: str, key: str, default: T | None = None) -> Any | T | None:
        """Return one value of a thread's configuration.

        Args:
            thread_id: The thread.
            key: The dotted name of the setting, such as `model_settings.temperature`.
            default: Returned if the setting isn't set.
        """
        record = await self._record(thread_id)
        value: Any = config_data(record.config)
        for name in config_key(key).split("."):
            if not isinstance(value, Mapping) or name not in value:
                return default
            value = value[name]  # pyright: ignore[reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    async def is_tool_enabled(self, thread_id: str, tool: str) -> bool:
        """Check whether a thread's configuration lets models see and call a tool."""
        return (await self._record(thread_id)).config.is_tool_enabled(tool)

    async def set_thread_config(self, thread_id: str, config: ThreadConfig | Mapping[str, Any]) -> ThreadConfig:
        """Change a thread's configuration, creating the thread if necessary.

        Args:
            thread_id: The thread.
            config: A complete configuration, or the values to change; None removes the thread's value.

        Returns:
            The new configuration.

        Raises:
            UsageError: A value is invalid.
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
        """Save the state that `load_thread_context` returned, if it has changed.

        Args:
            thread_id: The thread.

        Returns:
            Whether it was saved.

        Raises:
            ThreadConflict: The thread was continued since it was loaded.
            ToolError: The state isn't JSON data.
            UsageError: A thousand other threads were loaded since, so the original state is no longer known.
        """
        if thread_id not in self._loaded:
            if not self._forgot:
                return False
            raise UsageError(
                f"the state of thread {thread_id!r} is no longer known: {LOADED} other threads were loaded since",
                hint="Load it again, change the state, and save it before you load other threads.",
            )
        record, state = self._loaded[thread_id]
        now = await self._record(thread_id)
        if now.turn != record.turn:
            raise ThreadConflict(
                f"thread {thread_id!r} was continued meanwhile", hint="Load it again and change the state again."
            )
        state_text(state, f"thread {thread_id!r}")  # its error names the thread
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

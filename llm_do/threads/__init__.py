"""Conversations that outlive a process: threads, their state, the journal of runs, and the stores behind them.

The runtime reaches this package only through `llm_do.runtime.record.recording`; applications and the command line use
it directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {
    "AgentState": "llm_do.runtime.record.recording",
    "ContextProvider": "llm_do.runtime.call.context_providers",
    "ConversationManager": "llm_do.threads.managers.conversation_manager",
    "Conversations": "llm_do.threads.managers.pydantic_conversations",
    "Memory": "llm_do.runtime.record.store.memories",
    "MemoryFilter": "llm_do.runtime.record.store.memories",
    "MemoryOwner": "llm_do.runtime.record.store.memories",
    "MemoryStep": "llm_do.runtime.record.store.memories",
    "MemoryStore": "llm_do.runtime.record.store.memories",
    "Observation": "llm_do.runtime.record.stored_records",
    "ObservationManager": "llm_do.threads.managers.observation_manager",
    "PostgresStore": "llm_do.threads.postgres.postgres_store",
    "Recalled": "llm_do.runtime.record.store.memories",
    "Remembered": "llm_do.runtime.record.store.memories",
    "RunRecord": "llm_do.runtime.record.stored_records",
    "SqliteStore": "llm_do.threads.sqlite.sqlite_store",
    "StateManager": "llm_do.threads.managers.state_manager",
    "StoredMessage": "llm_do.runtime.record.stored_records",
    "ThreadConfig": "llm_do.project.thread_config",
    "ThreadContext": "llm_do.runtime.record.stored_records",
    "ThreadRecord": "llm_do.runtime.record.stored_records",
    "ThreadStore": "llm_do.runtime.record.thread_store",
    "ThreadsSpec": "llm_do.project.thread_config",
    "memory_store": "llm_do.threads.opened_stores",
    "open_store": "llm_do.threads.opened_stores",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.project.thread_config import ThreadConfig as ThreadConfig, ThreadsSpec as ThreadsSpec
    from llm_do.runtime.call.context_providers import ContextProvider as ContextProvider
    from llm_do.runtime.record.recording import AgentState as AgentState
    from llm_do.runtime.record.store.memories import (
        Memory as Memory,
        MemoryFilter as MemoryFilter,
        MemoryOwner as MemoryOwner,
        MemoryStep as MemoryStep,
        MemoryStore as MemoryStore,
        Recalled as Recalled,
        Remembered as Remembered,
    )
    from llm_do.runtime.record.stored_records import (
        Observation as Observation,
        RunRecord as RunRecord,
        StoredMessage as StoredMessage,
        ThreadContext as ThreadContext,
        ThreadRecord as ThreadRecord,
    )
    from llm_do.runtime.record.thread_store import ThreadStore as ThreadStore
    from llm_do.threads.managers.conversation_manager import ConversationManager as ConversationManager
    from llm_do.threads.managers.observation_manager import ObservationManager as ObservationManager
    from llm_do.threads.managers.pydantic_conversations import Conversations as Conversations
    from llm_do.threads.managers.state_manager import StateManager as StateManager
    from llm_do.threads.opened_stores import memory_store as memory_store, open_store as open_store
    from llm_do.threads.postgres.postgres_store import PostgresStore as PostgresStore
    from llm_do.threads.sqlite.sqlite_store import SqliteStore as SqliteStore

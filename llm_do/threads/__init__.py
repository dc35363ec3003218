"""Conversations that outlive a process: threads, their state, the journal of runs, and the stores behind them.

The runtime reaches this package only through `llm_do.runtime.record.recording`; applications and the command line use
it directly.
"""

from __future__ import annotations

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {
    "AgentState": "llm_do.runtime.record.recording",
    "ContextProvider": "llm_do.runtime.call.context_providers",
    "ConversationManager": "llm_do.threads.managers.conversation_manager",
    "Conversations": "llm_do.threads.managers.pydantic_conversations",
    "Observation": "llm_do.runtime.record.stored_records",
    "ObservationManager": "llm_do.threads.managers.observation_manager",
    "RunRecord": "llm_do.runtime.record.stored_records",
    "SqliteStore": "llm_do.threads.sqlite.sqlite_store",
    "StateManager": "llm_do.threads.managers.state_manager",
    "StoredMessage": "llm_do.runtime.record.stored_records",
    "ThreadConfig": "llm_do.runtime.record.recording",
    "ThreadContext": "llm_do.runtime.record.stored_records",
    "ThreadRecord": "llm_do.runtime.record.stored_records",
    "ThreadStore": "llm_do.runtime.record.thread_store",
    "memory_store": "llm_do.threads.opened_stores",
    "open_store": "llm_do.threads.opened_stores",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

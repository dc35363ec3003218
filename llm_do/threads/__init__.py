"""Conversations that outlive a process: threads, their state, the journal of runs, and the stores that keep them.

A run reaches this room through `llm_do.runtime.recording` only; applications and the command line use it directly.
"""

from __future__ import annotations

from llm_do._lazy import lazy_exports

_EXPORTS = {
    "AgentState": "llm_do.runtime.recording",
    "ContextProvider": "llm_do.runtime.providers",
    "ConversationManager": "llm_do.threads.conversation",
    "Conversations": "llm_do.threads.pydantic_store",
    "Observation": "llm_do.threads.values",
    "ObservationManager": "llm_do.threads.observations",
    "RunRecord": "llm_do.threads.values",
    "SqliteStore": "llm_do.threads.sqlite",
    "StateManager": "llm_do.threads.state",
    "StoredMessage": "llm_do.threads.values",
    "ThreadConfig": "llm_do.runtime.recording",
    "ThreadContext": "llm_do.threads.values",
    "ThreadRecord": "llm_do.threads.values",
    "ThreadStore": "llm_do.threads.store",
    "memory_store": "llm_do.threads.opening",
    "open_store": "llm_do.threads.opening",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

"""Names that other versions or the systems behind llm-do have, and what they are called here."""

from __future__ import annotations

from llm_do import flows, messages, threads, toolkits

__all__ = ["successor"]

_PACKAGES = (flows, messages, threads, toolkits)

_SUCCESSORS = {
    "Agent": "write an `.agent` file, or use `llm_do.AgentSpec`; `llm_do.run` runs either",
    "AgentFactory": "use `llm_do.Project.load` and `llm_do.Runtime`",
    "AgentFile": "an agent's declaration is `llm_do.AgentSpec`",
    "ContextManager": "declare `compaction` in an agent, as in `AgentSpec(compaction={'max_tokens': 4000})`",
    "ConversationContext": "a conversation is `RunResult.messages`, or `RunResult.execution_context` with its toolkits",
    "ConversationMessage": "a stored message is `llm_do.threads.StoredMessage`",
    "ConversationRepository": "use `llm_do.threads.ConversationManager`",
    "Hook": "a hook is any function; `llm_do.HookPoint` has the points",
    "IToolExecutor": "derive the tool from `llm_do.Tool`",
    "InMemoryStorageAdapter": "use `llm_do.threads.memory_store`",
    "IndexedDBStorageAdapter": "use `llm_do.threads.SqliteStore`",
    "Message": "use `llm_do.messages.Message`",
    "MessageRole": "messages have a `role`: see `llm_do.messages`",
    "ObservationSocket": "use `ObservationManager.subscribe` of `llm_do.threads`, or `Runtime.on`",
    "OpenAICompatibleProvider": "it is in `llm_do.providers`",
    "Runner": "use `llm_do.run`",
    "RuntimeEvent": "use `llm_do.Event`; 0.3's class is in `llm_do.runtime.events`",
    "StateRepository": "use `llm_do.threads.StateManager`",
    "StorageAdapter": "a store is a `llm_do.threads.ThreadStore`",
    "StreamEvent": "use `llm_do.Event`, whose `type` tells events apart",
    "TextEvent": "use `llm_do.Event`; a text has `event.type == 'text'`",
    "ToolCallEvent": "use `llm_do.Event`; a tool call has `event.type == 'tool_call'`",
    "ToolRegistry": "a project's tools are in `llm_do.Project.registry`",
    "ToolSchema": "a tool's schema is `parameters` of `llm_do.Tool`",
    "ToolSystem": "every tool call passes the runtime: use `llm_do.Runtime`",
}
"""What to use instead of a name."""


def successor(name: str) -> str | None:
    """What to use instead of a name that a package doesn't have; None if nothing is known.

    Example:
        >>> successor("ThreadConfig"), successor("Nonsense")
        ('it is in `llm_do.threads`', None)
    """
    home = next((package.__name__ for package in _PACKAGES if name in package.__all__), None)
    return f"it is in `{home}`" if home is not None and name not in _SUCCESSORS else _SUCCESSORS.get(name)

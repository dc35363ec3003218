"""What a project says of threads: where they are kept, and how agents work on them. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.text.globs import matches_any

__all__ = ["ThreadConfig", "ThreadsSpec"]


@frozen
class ThreadConfig:
    """How agents work on one thread. What isn't set is left to the agent's file and to the project.

    Args:
        model: The model of the thread's agent, or several that are tried in order.
        model_settings: Sent to the provider, over the agent's own.
        enabled_tools: Names or globs of the tools that may be seen and called; None is all that agents declare.
        history_limit: Messages of the past that a model is sent; None is all of them.
        system_prompt: Added to the agent's instructions.
        compaction: How a long history is shortened, as in an agent's file.

    Example:
        >>> config = ThreadConfig(enabled_tools=("search_*",))
        >>> config.is_tool_enabled("search_web"), config.is_tool_enabled("delete_file")
        (True, False)
    """

    model: str | Sequence[str] | None = None
    model_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    enabled_tools: tuple[str, ...] | None = None
    history_limit: int | None = None
    system_prompt: str | None = None
    compaction: Mapping[str, Any] | None = None

    def is_tool_enabled(self, tool: str) -> bool:
        """Whether a tool may be seen and called here: the one predicate for both.

        Args:
            tool: The name the model sees.
        """
        return self.enabled_tools is None or matches_any(tool, self.enabled_tools)


@frozen
class ThreadsSpec:
    """A project's threads.

    Args:
        store: Where they are kept: `sqlite` or `memory`.
        config: The configuration that a new thread begins with.
    """

    store: str = "sqlite"
    config: ThreadConfig = field(default_factory=ThreadConfig)

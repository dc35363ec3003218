"""A project's settings for threads: where they are stored, and how agents work on them. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.text.globs import matches_any

__all__ = ["ThreadConfig", "ThreadsSpec"]


@frozen
class ThreadConfig:
    """How agents work on one thread. Unset values come from the agent's file and the project.

    Args:
        model: The model of the thread's agent, or several to try in order.
        model_settings: Sent to the provider; they override the agent's own.
        enabled_tools: Names or globs of the tools that models may see and call; None for all that agents declare.
        history_limit: How many past messages to send to the model, in whole turns and at least one; None for all.
        system_prompt: Added to the agent's instructions.
        compaction: How to shorten a long history, as in an agent's file.

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
        """Check whether models may see and call a tool on this thread.

        Args:
            tool: The name the model sees.
        """
        return self.enabled_tools is None or matches_any(tool, self.enabled_tools)


@frozen
class ThreadsSpec:
    """The manifest's `threads`.

    Args:
        store: Where threads are stored: `sqlite`, `memory`, or the URL of a PostgreSQL database. What names it
            instead of the manifest may be a SQLite file, too.
        config: The configuration of a new thread.
        keep_days: Days after which a thread that no one has continued is deleted; None to keep threads for ever.

    Example:
        >>> ThreadsSpec(keep_days=90).keep_days
        90
    """

    store: str = "sqlite"
    config: ThreadConfig = field(default_factory=ThreadConfig)
    keep_days: int | None = None

    def __post_init__(self) -> None:
        days = cast("object", self.keep_days)
        if days is not None and (not isinstance(days, int) or isinstance(days, bool) or days < 1):
            raise UsageError(
                f"keep_days must be a whole number of days, 1 or more, not {days!r}",
                hint="Pass such a number, or None to keep threads for ever.",
            )

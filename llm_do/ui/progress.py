"""One line that says what a run is doing: which agent, which tool, since when."""

from __future__ import annotations

from llm_do.policy.display import visible
from llm_do.runtime.events import (
    CallFinishedEvent,
    CallStartedEvent,
    Event,
    RetryEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from llm_do.ui.text import cut

__all__ = ["Progress"]


class Progress:
    """What is going on, kept up by events.

    Args:
        started: When the run began, by a clock of the caller's.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._calls: dict[str, str] = {}
        self._tools: dict[tuple[str, str], tuple[str, str]] = {}
        self._retry: dict[str, str] = {}
        self._tokens = 0

    def note(self, event: Event) -> None:
        """Take an event in."""
        match event:
            case CallStartedEvent():
                self._calls[event.call_id] = event.path
            case CallFinishedEvent():
                self._calls.pop(event.call_id, None)
                self._retry.pop(event.call_id, None)
            case ToolCallEvent():
                self._tools[event.call_id, event.tool_call_id] = (event.path, event.tool_name)
            case ToolResultEvent():
                self._tools.pop((event.call_id, event.tool_call_id), None)
            case RetryEvent():
                self._retry[event.call_id] = f"retry {event.attempt}"
            case UsageEvent():
                self._retry.pop(event.call_id, None)
                self._tokens += event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
            case _:
                pass

    def text(self, now: float, columns: int) -> str:
        """The line as it should stand now.

        Args:
            now: The time, by the same clock.
            columns: How wide it may be.
        """
        parts = [f"{now - self._started:.0f} s", *self._doing()]
        if self._tokens:
            parts.insert(1, f"{self._tokens:,} tokens")
        return cut(visible(" · ".join(parts)), columns)

    def _doing(self) -> list[str]:
        busy = {path for path, _ in self._tools.values()}
        tools = [f"{path} > {tool}" for path, tool in self._tools.values()]
        thinking = [
            path + (f" ({self._retry[call]})" if call in self._retry else "")
            for call, path in self._calls.items()
            if path not in busy
        ]
        # The innermost first: it is what the others wait for.
        return sorted([*tools, *thinking], key=lambda item: -item.count("/"))

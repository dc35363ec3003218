"""What each agent did in a run: how often it was called, how long it took, its tokens and their cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import UsageEvent
from llm_do.runtime.record.events.run_events import CallFinishedEvent, CallStartedEvent, RunStartedEvent
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.call_tree import seconds_text
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import text_width, truncate

__all__ = ["AgentTotals"]

_MOST = 12
"""Agents that have a line."""


@dataclass(slots=True)
class _Total:
    calls: int = 0
    longest: float = 0.0
    tokens: int = 0
    cost: float | None = None


@dataclass(slots=True, eq=False)
class AgentTotals:
    """The agents of the current run, in the order of their first requests."""

    _totals: dict[str, _Total] = field(default_factory=dict[str, _Total])
    _started: dict[str, float] = field(default_factory=dict[str, float])
    _counted: set[str] = field(default_factory=set[str])

    def take(self, event: Event) -> None:
        """Count an event."""
        match event:
            case RunStartedEvent():
                self._totals.clear()
                self._started.clear()
                self._counted.clear()
            case CallStartedEvent():
                self._started[event.call_id] = event.time
            case UsageEvent():
                total = self._totals.setdefault(event.agent_name, _Total())
                total.calls += event.call_id not in self._counted
                self._counted.add(event.call_id)
                total.tokens += event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
                cost = event.usage.get("cost_usd")
                total.cost = total.cost if cost is None else (total.cost or 0.0) + cost
            case CallFinishedEvent():
                started = self._started.pop(event.call_id, event.time)
                if event.call_id in self._counted and event.agent_name in self._totals:
                    total = self._totals[event.agent_name]
                    total.longest = max(total.longest, event.time - started)
            case _:
                pass

    def lines(self, columns: int, *, color: bool = False, lines: bool = True) -> list[str]:
        """A table with a line for each agent; empty for a run of one agent, which the summary describes."""
        if len(self._totals) < 2:
            return []
        rows = [_row(name, total) for name, total in list(self._totals.items())[:_MOST]]
        widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
        found: list[str] = []
        for name, *cells in rows:
            texts = [" " * (width - text_width(cell)) + cell for cell, width in zip(cells, widths[1:], strict=True)]
            facts = truncate("  ".join(text for text in texts if text), max(columns - widths[0] - 5, 1)).rstrip()
            shown = f"{name}{' ' * (widths[0] - text_width(name))}"
            found.append(f"  {paint(shown, 'name', color=color)}  {paint(facts, 'quiet', color=color)}")
        more = len(self._totals) - len(rows)
        return (
            [*found, paint(f"  {'…' if lines else '...'} {more} more agents", "quiet", color=color)] if more else found
        )


def _row(name: str, total: _Total) -> tuple[str, ...]:
    several = total.calls > 1
    return (
        truncate(sanitize(name), 30),
        f"{total.calls:,} call{'s' if several else ''}{'' if several else ' '}",
        f"{'up to ' if several else ''}{seconds_text(total.longest)}",
        f"{total.tokens:,} tokens",
        "" if total.cost is None else f"${total.cost:.4f}",
    )

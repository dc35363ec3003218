"""A recorded run as a tree: who called whom with which input, what came out, and what each call took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import (
    HookEvent,
    ModelRequestEvent,
    RetryEvent,
    TextDoneEvent,
    TextEvent,
    ThinkingEvent,
    UsageEvent,
)
from llm_do.runtime.record.events.run_events import (
    CallFinishedEvent,
    CallStartedEvent,
    GuardEvent,
    HandoffEvent,
    RunFailedEvent,
    RunFinishedEvent,
    RunResumedEvent,
    RunStartedEvent,
    WarningEvent,
)
from llm_do.runtime.record.events.tool_events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    StateChangedEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.call_tree import seconds_text
from llm_do.ui.live.event_lines import describe, input_text, usage_text
from llm_do.ui.reports.error_text import block_lines
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import shorten_middle, text_width, truncate

__all__ = ["RunTree"]

_LONGEST = 2000
"""Characters of a value that a line may need; a line is then cut to its width."""

_LEAST = 6
"""Columns below which no part of a value is shown."""

_TIMED = 0.05
"""Seconds from which on a tool's duration is worth showing."""


@dataclass(slots=True, eq=False)
class _Step:
    """A line below a call: a tool call, a text of its model, a warning."""

    text: str
    style: str = "quiet"
    facts: str = ""


@dataclass(slots=True, eq=False)
class _Call:
    """A call of an agent, a function or a flow; `items` are what happened in it, in order."""

    started_by: CallStartedEvent
    ended_by: CallFinishedEvent | None = None
    tokens: int = 0
    cost: float | None = None
    items: list[_Call | _Step] = field(default_factory=list["_Call | _Step"])

    @property
    def path(self) -> str:
        """Its call path."""
        return self.started_by.path

    @property
    def status(self) -> str:
        """How it ended, if it has."""
        return self.ended_by.status if self.ended_by is not None else "unfinished"

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return self.ended_by.time - self.started_by.time if self.ended_by is not None else None

    @property
    def output(self) -> str:
        """What it returned, on one line."""
        value = self.ended_by.output if self.ended_by is not None else None
        return "" if value is None else shorten_middle(value, _LONGEST)


class RunTree:
    """The calls of one run.

    Args:
        color: Use ANSI colours.
        lines: Draw with box characters; else with ASCII.
    """

    def __init__(self, events: Iterable[Event], *, color: bool = False, lines: bool = True) -> None:
        self._color = color
        self._marks = ("├─ ", "└─ ", "│  ", "→ ", "✓ ", "✗ ") if lines else ("|- ", "`- ", "|  ", "-> ", "+ ", "x ")
        self._dot = " · " if lines else ", "
        self._calls: dict[str, _Call] = {}
        self._tools: dict[tuple[str, str], _Step] = {}
        self._roots: list[_Call] = []
        self._failure = ""
        self._block: list[str] = []
        for event in events:
            self._take(event)

    @property
    def tokens(self) -> int:
        """The tokens of all calls."""
        return sum(call.tokens for call in self._calls.values())

    @property
    def cost(self) -> float | None:
        """US dollars of all calls, None where no price is known."""
        known = [call.cost for call in self._calls.values() if call.cost is not None]
        return sum(known) if known else None

    def to_data(self) -> list[dict[str, Any]]:
        """The calls as JSON data, each with those that it made."""
        return [_data(call) for call in self._roots]

    def draw(self, columns: int) -> list[str]:
        """The tree as lines."""
        lines = [line for call in self._roots for line in self._lines(call, "", "", columns - 1)]
        if self._failure:
            lines.append(paint(truncate(self._failure, columns - 1), "bad", color=self._color))
            lines += [truncate(line, columns - 1) for line in self._block]
        return lines

    def _take(self, event: Event) -> None:
        if isinstance(event, RunFailedEvent):
            self._failure = f"{self._marks[5]}{describe(event, _LONGEST)}"
            self._block = block_lines(event.error.get("block"))
        elif isinstance(event, CallStartedEvent):
            call = self._calls[event.call_id] = _Call(event)
            caller = self._calls.get(event.parent_call_id or "")
            (self._roots if caller is None else caller.items).append(call)
        elif event.call_id in self._calls:
            self._take_in(self._calls[event.call_id], event)

    def _take_in(self, call: _Call, event: Event) -> None:
        match event:
            case CallFinishedEvent():
                call.ended_by = event
            case UsageEvent():
                call.tokens += event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
                cost = event.usage.get("cost_usd")
                call.cost = call.cost if cost is None else (call.cost or 0.0) + cost
            case ToolCallEvent():
                step = self._tools[event.call_id, event.tool_call_id] = _Step(describe(event, _LONGEST), "tool")
                call.items.append(step)
            case ToolResultEvent():
                self._finish_tool(call, event)
            case ApprovalResolvedEvent():
                step = self._tools.get((event.call_id, event.tool_call_id))
                if step is not None:
                    step.facts = describe(event).removeprefix(f"{sanitize(event.tool_name)} ")
            case TextDoneEvent() if event.text.strip():
                call.items.append(_Step(describe(event, _LONGEST), "quiet"))
            case WarningEvent():
                call.items.append(_Step(f"warning: {describe(event, _LONGEST)}", "warn"))
            case RetryEvent() | HandoffEvent() | StateChangedEvent() | GuardEvent() | HookEvent():
                call.items.append(_Step(describe(event, _LONGEST)))
            case (
                RunStartedEvent()
                | RunResumedEvent()
                | RunFinishedEvent()
                | RunFailedEvent()
                | CallStartedEvent()
                | TextEvent()
                | TextDoneEvent()
                | ThinkingEvent()
                | ApprovalRequestedEvent()
                | ModelRequestEvent()
            ):  # in another form, or not at all
                pass

    def _finish_tool(self, call: _Call, event: ToolResultEvent) -> None:
        step = self._tools.get((event.call_id, event.tool_call_id))
        good = event.status == "success"
        if step is None or (good and f"{event.call_id}.{event.tool_call_id}" in self._calls):
            if step is not None:
                call.items.remove(step)  # the nested call has a line of its own
            return
        result = shorten_middle(event.result, _LONGEST) if good else describe(event, _LONGEST).partition(": ")[2]
        step.text = f"{self._marks[4 if good else 5]}{step.text} {self._marks[3]}{result}"
        step.style = "quiet" if good else "bad"
        took = [seconds_text(event.duration)] if event.duration >= _TIMED else []
        step.facts = self._dot.join([*([step.facts] if step.facts else []), *took])

    def _lines(self, call: _Call, first: str, rest: str, columns: int) -> Iterator[str]:
        name = sanitize(call.path if not first else call.path.rpartition("/")[2])
        took = seconds_text(call.seconds) if call.seconds is not None else ""
        good = call.status == "completed"
        facts = [*([] if good else [call.status]), *([took] if took else []), *usage_text(call.tokens, call.cost)]
        about = input_text(call.started_by, _LONGEST)
        yield self._call_line(first, name, about, self._dot.join(facts), columns, good=good)
        output = call.output
        items = [item for item in call.items if not (isinstance(item, _Step) and item.text == output)]
        if output:
            items.append(_Step(f"{self._marks[3]}{output}", ""))
        for left, item in zip(range(len(items) - 1, -1, -1), items, strict=True):
            mark, below = self._marks[0 if left else 1], self._marks[2] if left else "   "
            if isinstance(item, _Call):
                yield from self._lines(item, rest + mark, rest + below, columns)
            else:
                yield self._step_line(rest + mark, item, columns)

    def _call_line(self, indent: str, name: str, text: str, facts: str, columns: int, *, good: bool) -> str:
        name = truncate(name, max(columns - text_width(indent), 1))
        left = columns - text_width(indent) - text_width(name)
        facts = truncate(facts, left - 2) if left > _LEAST else ""
        room = left - text_width(facts) - 4
        shown = truncate(text, room) if text and room >= _LEAST else ""
        parts = [paint(name, "name" if good else "bad", color=self._color), shown]
        parts.append(paint(facts, "quiet", color=self._color))
        return indent + "  ".join(filter(None, parts))

    def _step_line(self, indent: str, step: _Step, columns: int) -> str:
        room = columns - text_width(indent)
        facts = f"  {step.facts}" if step.facts and text_width(step.facts) < room // 2 else ""
        shown = truncate(step.text, max(room - text_width(facts), 1))
        return indent + paint(shown + facts, step.style or "quiet", color=self._color and bool(step.style))


def _data(call: _Call) -> dict[str, Any]:
    return {
        "path": call.path,
        "status": call.status,
        "label": call.started_by.label,
        "input": call.started_by.input,
        "output": call.ended_by.output if call.ended_by is not None else None,
        "seconds": call.seconds,
        "tokens": call.tokens,
        "cost_usd": call.cost,
        "calls": [_data(item) for item in call.items if isinstance(item, _Call)],
    }

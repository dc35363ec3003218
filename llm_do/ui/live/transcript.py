"""What stays of a run in the scrollback of a terminal: finished tool calls, finished agents, the models' texts.

Of calls that run beside each other, whose lines would mingle, only a summary and what has failed stay.
"""

from __future__ import annotations

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
from llm_do.text.words import with_count
from llm_do.ui.live.call_tree import CallTree, seconds_text
from llm_do.ui.live.event_lines import describe, event_line, outcome_text, usage_text
from llm_do.ui.terminal.markdown import render_markdown
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import call_text, shorten_middle, text_width, truncate

__all__ = ["Transcript"]

_LEAST = 6
"""Columns below which no part of an input is shown."""


class Transcript:
    """Makes lines of tool calls and agents that have finished.

    An agent's last text is its result, which its caller shows; so each text is held back until more follows. So is the
    result of a call that the entry alone waits for: it may be that of the run, which is shown elsewhere.

    Args:
        tree: The calls in progress; it takes each event after the transcript has.
        color: Use ANSI colours.
        lines: Draw with more than ASCII.
    """

    def __init__(self, tree: CallTree, *, color: bool = False, lines: bool = True) -> None:
        self._tree = tree
        self._color = color
        self._good, self._bad, self._gives = ("✓", "✗", "→") if lines else ("+", "x", "->")
        self._dot = " · " if lines else ", "
        self._calls: dict[tuple[str, str], str] = {}
        self._nested: set[str] = set()
        self._held: dict[str, TextDoneEvent] = {}
        self._result: CallFinishedEvent | None = None

    def take(self, event: Event, columns: int) -> str:
        """The lines that an event gives."""
        held, self._result = self._result, None
        lines = self._take(event, columns)
        if not lines and self._result is None:
            self._result = held
            return lines
        return self._result_line(held, columns) + lines

    def release(self, columns: int) -> str:
        """The result that was held back, since something else is about to be shown."""
        held, self._result = self._result, None
        return self._result_line(held, columns)

    def _take(self, event: Event, columns: int) -> str:
        match event:
            case TextDoneEvent():
                earlier = self._release(event.call_id, columns)
                if event.text.strip():
                    self._held[event.call_id] = event
                return earlier
            case ToolCallEvent():
                self._calls[event.call_id, event.tool_call_id] = describe(event, 200)
                return self._release(event.call_id, columns)
            case ToolResultEvent():
                return self._tool(event, columns)
            case CallFinishedEvent():
                return self._finished(event, columns)
            case RetryEvent() | HandoffEvent() | GuardEvent() | HookEvent():
                return f"{truncate(event_line(event) or '', columns - 1)}\n"
            case RunFailedEvent():
                return "".join(self._release(call_id, columns) for call_id in list(self._held))
            case (
                RunStartedEvent()
                | RunResumedEvent()
                | RunFinishedEvent()
                | CallStartedEvent()
                | TextEvent()
                | ThinkingEvent()
                | ApprovalRequestedEvent()
                | ApprovalResolvedEvent()
                | StateChangedEvent()
                | ModelRequestEvent()
                | UsageEvent()
                | WarningEvent()
            ):  # in another form, or not at all
                return ""

    def rest(self, output: str | None, columns: int) -> str:
        """What was held back, at the end of a run, but for its output."""
        held, self._result = self._result, None
        if held is not None and output is not None and _text(held.output).strip() == output.strip():
            held = None
        result = self._result_line(held, columns)
        for call_id, event in list(self._held.items()):
            if output is not None and event.text.strip() == output.strip():
                del self._held[call_id]
        return result + "".join(self._release(call_id, columns) for call_id in list(self._held))

    def _release(self, call_id: str, columns: int) -> str:
        event = self._held.pop(call_id, None)
        node = self._tree.node(call_id)
        if event is None or (node is not None and self._tree.is_folded(node)):
            return ""
        if "/" in event.path:
            return self._cut(f"{sanitize(event.path)}: ", describe(event, 400), columns, "name")
        return f"{paint(sanitize(event.path), 'name', color=self._color)}\n" + render_markdown(
            event.text, columns, color=self._color
        )

    def _tool(self, event: ToolResultEvent, columns: int) -> str:
        call = self._calls.pop((event.call_id, event.tool_call_id), None)
        if call is None:  # a call that an earlier attempt of the run began: its arguments aren't known here
            call = sanitize(event.tool_name) if event.args is None else call_text(event.tool_name, event.args, 200)
        if f"{event.call_id}.{event.tool_call_id}" in self._nested and event.status == "success":
            return ""
        good = event.status == "success"
        node = self._tree.node(event.call_id)
        if good and node is not None and self._tree.is_folded(node):
            return ""
        mark = paint(self._good if good else self._bad, "good" if good else "bad", color=self._color)
        # A long path leaves the call at least half of the line.
        head = f"{truncate(sanitize(event.path), max(columns - text_width(call) - 4, columns // 2))} "
        shown = truncate(call, max(columns - text_width(head) - 3, 1))
        line = f"{mark} {head}{paint(shown, 'tool', color=self._color)}"
        facts = seconds_text(event.duration) if event.duration >= 0.05 else ""
        result = shorten_middle(event.result, 400) if good else outcome_text(event.status, event.result, 400)
        room = columns - text_width(head) - text_width(shown) - 3
        inline = f" {self._gives} {result}" + (f"  {facts}" if facts else "")
        if text_width(inline) < room:
            return f"{line}{paint(inline, 'quiet', color=self._color)}\n"
        if facts and len(facts) + 2 < room:
            line += paint(f"  {facts}", "quiet", color=self._color)
        return f"{line}\n" + self._cut(f"  {self._gives} ", result, columns, "quiet")

    def _finished(self, event: CallFinishedEvent, columns: int) -> str:
        node = self._tree.node(event.call_id)
        self._nested.add(event.call_id)
        if "/" in event.path:
            self._held.pop(event.call_id, None)
        if node is None or "/" not in event.path:
            return ""
        good = event.status == "completed"
        if good and self._tree.is_inside_folded(node):
            return ""
        mark = paint(self._good if good else self._bad, "good" if good else "bad", color=self._color)
        words = [seconds_text(event.time - node.started), *usage_text(node.tokens, node.cost)]
        if self._tree.is_folded(node) and node.tool_calls:
            words.append(with_count(node.tool_calls, "tool call"))
        facts = self._dot.join(words)
        status = "" if good else f" {event.status}"
        head = truncate(f"{sanitize(event.path)}{status}", max(columns - len(facts) - 5, 10))
        left = columns - text_width(head) - len(facts) - 7
        shown = self._tree.about(node)
        about = f"  {truncate(shown, left)}" if shown and left >= _LEAST else ""
        line = f"{mark} {paint(head, 'name', color=self._color)}{about}  {paint(facts, 'quiet', color=self._color)}\n"
        if self._tree.is_last_running(node):
            self._result = event
            return line
        return line + self._result_line(event, columns)

    def _result_line(self, event: CallFinishedEvent | None, columns: int) -> str:
        output = shorten_middle(event.output, 400) if event is not None and event.output is not None else ""
        return self._cut(f"  {self._gives} ", output, columns, "quiet") if output else ""

    def _cut(self, head: str, text: str, columns: int, style: str) -> str:
        return f"{paint(truncate(head + text, columns - 1), style, color=self._color)}\n"


def _text(output: object) -> str:
    """A result as the run's output is written."""
    from llm_do.text.output_text import output_text

    return output_text(output)

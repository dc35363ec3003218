"""What a run is doing, as a tree of agents and their tools: kept up by events, drawn as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.model_events import RetryEvent, TextDoneEvent, TextEvent, UsageEvent
from llm_do.runtime.record.events.run_events import CallFinishedEvent, CallStartedEvent
from llm_do.runtime.record.events.tool_events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from llm_do.text.sanitizer import sanitize
from llm_do.ui.live.event_lines import describe, input_text, retry_text, usage_text
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import text_width, truncate, wrap

__all__ = ["CallTree", "Node", "seconds_text"]

TAIL = 6
"""Rows of streamed text below an agent."""

_KEPT = 4000

_ABOUT = 200
"""Characters kept of a call's input; a line shows as many as fit."""

_LEAST = 6
"""Columns below which no part of an input is shown."""


@dataclass(slots=True, eq=False)
class OpenTool:
    """A tool call in progress.

    Args:
        text: The call, shortened.
        started: When, in seconds since the epoch.
        asked: Whether it waits for approval.
    """

    text: str
    started: float
    asked: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """A call of an agent, a flow or a function in progress.

    Args:
        call_id: Its id.
        parent: Its caller's.
        path: Its call path.
        started: When, in seconds since the epoch.
        tools: Its open tool calls by their ids.
        text: The text so far of its model's unfinished response.
        retry: The retry that it waits for.
        tokens: Tokens so far, with those of the calls that it has made.
        cost: US dollars so far, in the same way; None where no price is known.
        about: What distinguishes it from its siblings: its label, or the beginning of its input.
        calls: How many nested calls it has made.
        done: How many of them have ended.
        firsts: What distinguishes the first call of each path among them.
        shared: The beginning that this has in common with all further calls of the path.
        parallel: Whether it has run beside another call of its caller.
        tool_calls: Finished tool calls, with those of the calls that it has made.
    """

    call_id: str
    parent: str | None
    path: str
    started: float
    tools: dict[str, OpenTool] = field(default_factory=dict[str, OpenTool])
    text: str = ""
    retry: str = ""
    tokens: int = 0
    cost: float | None = None
    about: str = ""
    calls: int = 0
    done: int = 0
    firsts: dict[str, str] = field(default_factory=dict[str, str])
    shared: dict[str, str] = field(default_factory=dict[str, str])
    parallel: bool = False
    tool_calls: int = 0

    def set_waiting(self, tool_call_id: str, *, waits: bool) -> None:
        """Mark a tool call as waiting for a person, or not any more."""
        tool = self.tools.get(tool_call_id)
        if tool is not None:
            tool.asked = waits


@frozen
class _Row:
    """A drawn line, and whether it is a call's."""

    line: str
    is_call: bool = False


@frozen
class _Drawing:
    """How the tree is drawn this time: rows of text below a call, one line a call or more, and each call's children."""

    now: float
    columns: int
    tail: int
    compact: bool
    below: Mapping[str, list[Node]]


class CallTree:
    """The calls in progress.

    Args:
        color: Use ANSI colours.
        lines: Draw with box characters; else with ASCII.
    """

    def __init__(self, *, color: bool = False, lines: bool = True) -> None:
        self._nodes: dict[str, Node] = {}
        self._over: set[str] = set()
        self._color = color
        self._marks = ("├─ ", "└─ ", "│  ", "…") if lines else ("|- ", "`- ", "|  ", "...")
        self._dot = " · " if lines else ", "

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._nodes

    def node(self, call_id: str) -> Node | None:
        """A call in progress, None if it isn't."""
        return self._nodes.get(call_id)

    def update(self, event: Event) -> None:
        """Update the tree with an event."""
        if isinstance(event, CallStartedEvent):
            self._begin(event)
            return
        node = self._nodes.get(event.call_id)
        if node is None:
            return
        if isinstance(event, CallFinishedEvent):
            self._end(node)
        elif isinstance(event, UsageEvent | ToolResultEvent):
            for each in self._upwards(node):
                _count(each, event)
        match event:
            case ToolCallEvent():
                node.tools[event.tool_call_id] = OpenTool(describe(event, 60), event.time)
            case ToolResultEvent():
                node.tools.pop(event.tool_call_id, None)
            case ApprovalRequestedEvent() | ApprovalResolvedEvent():
                node.set_waiting(event.tool_call_id, waits=isinstance(event, ApprovalRequestedEvent))
            case TextEvent():
                node.text, node.retry = (node.text + event.text)[-_KEPT:], ""
            case TextDoneEvent():
                node.text = ""
            case RetryEvent():
                node.text, node.retry = "", retry_text(event)
            case _:
                pass

    def _begin(self, event: CallStartedEvent) -> None:
        if not self._nodes:
            self._over.clear()
        self._nodes[event.call_id] = Node(
            event.call_id, event.parent_call_id, event.path, event.time, about=input_text(event, _ABOUT)
        )
        parent = self._nodes.get(event.parent_call_id or "")
        if parent is not None:
            self._note_parallel(self._nodes[event.call_id], parent)
            about = self._nodes[event.call_id].about
            parent.calls += 1
            first = parent.firsts.setdefault(event.path, about)
            if first is not about:
                parent.shared[event.path] = _common_beginning(parent.shared.get(event.path, first), about)

    def _note_parallel(self, node: Node, parent: Node) -> None:
        """Note which calls run beside each other."""
        running = parent.calls - parent.done
        if running == 1:
            for each in self._nodes.values():
                each.parallel |= each.parent == parent.call_id
        node.parallel |= running > 0

    def _upwards(self, node: Node | None) -> Iterator[Node]:
        """A call and its callers."""
        while node is not None:
            yield node
            node = self._nodes.get(node.parent or "")

    def _end(self, node: Node) -> None:
        del self._nodes[node.call_id]
        self._over.add(node.call_id)
        if node.parent in self._nodes:
            self._nodes[node.parent].done += 1

    def is_folded(self, node: Node) -> bool:
        """Whether what happens in a call is summed up when it ends: it, or a caller of it, ran beside others."""
        return any(each.parallel for each in self._upwards(node))

    def is_last_running(self, node: Node) -> bool:
        """Whether a call is the only one that the entry waits for."""
        parent = self._nodes.get(node.parent or "")
        return parent is not None and "/" not in parent.path and parent.calls - parent.done == 1

    def is_inside_folded(self, node: Node) -> bool:
        """Whether a call is summed up with a caller of it."""
        parent = self._nodes.get(node.parent or "")
        return parent is not None and self.is_folded(parent)

    def about(self, node: Node) -> str:
        """What distinguishes a call from its siblings: its input, without the beginning that all of theirs have."""
        parent = self._nodes.get(node.parent or "")
        shared = parent.shared.get(node.path, "") if parent is not None else ""
        cut = shared.rfind(" ") + 1
        if cut < _LEAST or len(node.about) <= cut or not node.about.startswith(shared[:cut]):
            return node.about
        return f"{self._marks[3]}{node.about[cut:]}"

    def draw(self, now: float, columns: int, rows: int) -> list[str]:
        """The tree as lines; where it is too high, streamed text goes first, then lines of their own for tools."""
        roots: list[Node] = []
        below: dict[str, list[Node]] = {}
        for node in self._nodes.values():
            if node.parent is None or node.parent not in self._nodes:
                roots.append(node)
            else:
                below.setdefault(node.parent, []).append(node)
        found: list[_Row] = []
        for tail, compact in ((TAIL, False), (1, False), (0, False), (0, True)):
            drawing = _Drawing(now, columns - 1, tail, compact, below)
            # Of thousands of calls, only what could be shown is drawn.
            found = list(islice((row for node in roots for row in self._rows(node, "", "", drawing)), rows + 1))
            if len(found) <= rows:
                return [row.line for row in found]
        shown = found[: rows - 1]
        hidden = len(self._nodes) - sum(row.is_call for row in shown)
        return [*(row.line for row in shown), paint(f"{self._marks[3]} {hidden} more", "quiet", color=self._color)]

    def _rows(self, node: Node, first: str, rest: str, drawing: _Drawing) -> Iterator[_Row]:
        columns = drawing.columns
        children = drawing.below.get(node.call_id, [])
        called = {child.call_id for child in children} | self._over
        tools = [tool for key, tool in node.tools.items() if not _is_call(key, node.call_id, called)]
        name = node.path if not first else node.path.rpartition("/")[2]
        facts = [seconds_text(drawing.now - node.started), *usage_text(node.tokens, node.cost)]
        facts += [f"{node.done} of {node.calls} done"] if node.calls > 1 else []
        facts += [node.retry] if node.retry else []
        about = self.about(node) if first else ""
        if drawing.compact and len(tools) == 1 and not children and first:
            tool = tools.pop()
            about = f"{about}{self._dot}{tool.text}" if about else tool.text
            facts += ["waits for approval"] if tool.asked else []
        yield _Row(self._line(first, sanitize(name), self._dot.join(facts), "name", columns, about), is_call=True)
        room = columns - len(rest) - 3
        for piece in _tail(node.text, room, drawing.tail) if node.text and drawing.tail else ():
            yield _Row(truncate(f"{rest}{self._marks[2]}{piece}", columns))
        left = len(tools) + len(children)
        for tool in tools:
            left -= 1
            waits = "waits for approval" if tool.asked else seconds_text(drawing.now - tool.started)
            mark = self._marks[0 if left else 1]
            yield _Row(self._line(rest + mark, tool.text, waits, "warn" if tool.asked else "tool", columns))
        for child in children:
            left -= 1
            mark, under = self._marks[0 if left else 1], self._marks[2] if left else "   "
            yield from self._rows(child, rest + mark, rest + under, drawing)

    def _line(self, indent: str, text: str, facts: str, style: str, columns: int, about: str = "") -> str:
        room = columns - text_width(indent)
        shown = truncate(text, max(room - text_width(facts) - 2, room // 2))
        left = room - text_width(shown) - text_width(facts) - 4
        if about and left >= _LEAST:
            about = truncate(about, left)
            line = f"{indent}{paint(shown, style, color=self._color)}  {about}"
            return f"{line}  {paint(facts, 'quiet', color=self._color)}"
        left = room - text_width(shown) - 2
        facts = truncate(facts, left) if left > 4 else ""
        line = f"{indent}{paint(shown, style, color=self._color)}"
        return line + (f"  {paint(facts, 'quiet', color=self._color)}" if facts else "")


def _common_beginning(one: str, other: str) -> str:
    length = next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[: min(len(one), len(other)) if length is None else length]


def _count(node: Node, event: UsageEvent | ToolResultEvent) -> None:
    """Count what a call, or one that it has made, has used."""
    if isinstance(event, ToolResultEvent):
        node.tool_calls += 1
        return
    node.retry = "" if node.call_id == event.call_id else node.retry
    node.tokens += event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
    cost = event.usage.get("cost_usd")
    if cost is not None:
        node.cost = (node.cost or 0.0) + cost


def _is_call(tool_call_id: str, call_id: str, called: set[str]) -> bool:
    """Whether a tool call is one of the nested calls that have lines of their own."""
    return f"{call_id}.{tool_call_id}" in called


def _tail(text: str, columns: int, rows: int) -> list[str]:
    lines = sanitize(text.rstrip(), lines=True).split("\n")[-rows:]
    return [piece for line in lines for piece in wrap(line, max(columns, 10))][-rows:]


def seconds_text(seconds: float) -> str:
    """A duration for a person.

    Example:
        >>> seconds_text(0.42), seconds_text(12.3), seconds_text(75)
        ('0.4 s', '12 s', '1:15')
    """
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes}:{left:02}" if minutes else f"{left} s"

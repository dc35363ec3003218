"""Run events in words: `describe` words every event, for the lines of `-v`, the transcript, the live tree, `runs show`.

The lines hold no time, so that logs can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_never

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
from llm_do.text.words import place_text, with_count
from llm_do.ui.reports.error_text import paragraph
from llm_do.ui.terminal.text_width import call_text, shorten_middle

if TYPE_CHECKING:
    from llm_do.runtime.record.results import RunResult

__all__ = [
    "describe",
    "event_line",
    "input_text",
    "outcome_text",
    "retry_text",
    "summary_line",
    "usage_text",
    "warning_line",
]

_BY = {
    "person": "by a person",
    "remembered": "by the answer to another",
    "cancelled": "since the run ended first",
}
"""How an approval was resolved, where `by` alone isn't clear."""

_MARKS = {"tool_call": " > ", "tool_result": " < ", "approval_requested": " ? ", "approval_resolved": " ? "}
"""What separates path and description in a line; elsewhere a colon."""

_WITHOUT_LINE = (
    RunStartedEvent
    | RunFinishedEvent
    | RunFailedEvent
    | TextEvent
    | TextDoneEvent
    | ThinkingEvent
    | StateChangedEvent
    | UsageEvent
    | ModelRequestEvent
    | WarningEvent
)
"""Events that `-v` shows in another form, or not at all."""


def event_line(event: Event) -> str | None:
    """One event as a line for `-v`, None where it has none."""
    if isinstance(event, _WITHOUT_LINE):
        return None
    return f"{sanitize(event.path)}{_MARKS.get(event.type, ': ')}{describe(event)}"


def describe(event: Event, limit: int = 160) -> str:
    """What happened, on one line and safe for a terminal; each value is cut to `limit` characters."""
    match event:
        case RunStartedEvent() | CallStartedEvent() | RunFinishedEvent() | CallFinishedEvent() | RunFailedEvent():
            return _describe_call(event, limit)
        case RunResumedEvent():
            return f"resumed as attempt {event.attempt}, after {with_count(event.steps, 'step')}"
        case TextEvent() | TextDoneEvent() | ThinkingEvent():
            return shorten_middle(event.text, limit)
        case WarningEvent():
            return shorten_middle(event.message, limit)
        case ToolCallEvent() | ToolResultEvent() | ApprovalRequestedEvent() | ApprovalResolvedEvent():
            return _describe_tool_call(event, limit)
        case RetryEvent():
            return f"{retry_text(event)}: {shorten_middle(event.error, limit)}"
        case GuardEvent() | HookEvent():
            return f"{_replacement_text(event)}: {shorten_middle(event.replacement, limit)}"
        case HandoffEvent():
            return f"handed over to {sanitize(event.target)}: {shorten_middle(event.reason, limit)}"
        case StateChangedEvent():
            return f"{sanitize(event.toolkit)}: {shorten_middle(event.updates, limit)}"
        case ModelRequestEvent():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            what = "summary" if event.purpose == "summary" else "request"
            return f"{what} {event.request} to {sanitize(event.model)}{again}"
        case UsageEvent():
            tokens = event.usage.get("input_tokens", 0) + event.usage.get("output_tokens", 0)
            return ", ".join(usage_text(tokens, event.usage.get("cost_usd"))) or "0 tokens"
    assert_never(event)


def _replacement_text(event: GuardEvent | HookEvent) -> str:
    if isinstance(event, GuardEvent):
        return f"the guard {sanitize(event.guard)} replaced the {event.side}"
    return f"the hook {sanitize(event.hook)} replaced the {sanitize(event.replaced)} of request {event.request}"


def _describe_call(
    event: RunStartedEvent | CallStartedEvent | RunFinishedEvent | CallFinishedEvent | RunFailedEvent, limit: int
) -> str:
    match event:
        case RunStartedEvent():
            return f"started with {shorten_middle(_plain(event.input), limit)}"
        case CallStartedEvent():
            return f"called with {shorten_middle(_plain(event.input), limit)}"
        case RunFinishedEvent() | CallFinishedEvent():
            return event.status if event.output is None else outcome_text(event.status, event.output, limit)
        case RunFailedEvent():
            return outcome_text(event.status, event.error.get("message") or event.error.get("type"), limit)


def _describe_tool_call(
    event: ToolCallEvent | ToolResultEvent | ApprovalRequestedEvent | ApprovalResolvedEvent, limit: int
) -> str:
    tool = sanitize(event.tool_name)
    match event:
        case ToolCallEvent():
            return call_text(event.tool_name, event.args, limit)
        case ToolResultEvent():
            return f"{tool}: {outcome_text(event.status, event.result, limit)}{_place(event.error)}"
        case ApprovalRequestedEvent():
            if event.rule or not event.reason.startswith(f"{event.tool_name} "):
                why = f"rule {event.rule}" if event.rule else event.reason or "by default"
                return f"{tool} needs approval: {shorten_middle(why, limit)}"
            return shorten_middle(event.reason, limit)
        case ApprovalResolvedEvent():
            decision = "allowed" if event.decision == "allow" else "denied"
            return f"{tool} {decision} {sanitize(_BY.get(event.by, f'by {event.by}'))}"


def _place(error: Mapping[str, Any] | None) -> str:
    """The place that an error comes from, in brackets."""
    return sanitize(place_text(error.get("file"), error.get("line"))) if error is not None else ""


def outcome_text(status: str, value: object, limit: int) -> str:
    """How something ended, and with which value."""
    return f"{status}: {shorten_middle(value, limit)}"


def retry_text(event: RetryEvent) -> str:
    """Which retry, and when; or which model is tried instead."""
    if event.model is not None:
        return f"trying {sanitize(event.model)}"
    return f"retry {event.attempt} in {event.delay:g} s"


def usage_text(tokens: int, cost: float | None) -> list[str]:
    """What has been used, as words for a line.

    Example:
        >>> usage_text(1200, 0.00123)
        ['1,200 tokens', '$0.0012']
    """
    words = [with_count(tokens, "token")] if tokens else []
    return words if cost is None else [*words, f"${cost:.4f}"]


def input_text(event: CallStartedEvent, limit: int) -> str:
    """What distinguishes a call from others of the same name: its label, or its input."""
    return shorten_middle(event.label or _plain(event.input), limit) if event.label or event.input else ""


def _plain(value: object) -> object:
    """The text of an input that holds nothing but text."""
    if isinstance(value, dict) and set(value) <= {"input", "attachments"} and not value.get("attachments"):  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return value.get("input", "")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def warning_line(event: WarningEvent) -> str:
    """A warning as a line."""
    return paragraph(event.message, agent_path=event.path, label="warning")


def summary_line(result: RunResult, seconds: float) -> str:
    """The last line of a run: how it ended, and what it took.

    Example:
        >>> summary_line(RunResult("completed", "x", "r", steps=1), 0.25)
        'completed: 1 step, 0 tokens, 0.2 s'
    """
    usage = result.usage
    parts = [with_count(result.steps, "step"), with_count(usage.total_tokens, "token")]
    if usage.tool_calls:
        parts.insert(1, with_count(usage.tool_calls, "tool call"))
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    parts.append(f"{seconds:.1f} s")
    if result.warnings:
        parts.append(with_count(len(result.warnings), "warning"))
    return f"{result.status}: {', '.join(parts)}"

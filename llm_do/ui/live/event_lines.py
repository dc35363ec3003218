"""What happens in a run, as plain lines: one an event, or none. They hold no time, so that logs can be compared."""

from __future__ import annotations

from llm_do.runtime.record.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CallFinishedEvent,
    CallStartedEvent,
    Event,
    HandoffEvent,
    RetryEvent,
    ToolCallEvent,
    ToolResultEvent,
    WarningEvent,
)
from llm_do.runtime.record.results import RunResult
from llm_do.text.sanitizer import sanitize
from llm_do.ui.reports.error_text import paragraph
from llm_do.ui.terminal.text_width import call_text, shorten_middle

__all__ = ["event_line", "summary_line", "warning_line"]

_BY = {"remembered": "by the answer to another", "cancelled": "since the run ended first"}
"""How what settled a question is told, where its name isn't enough."""


def event_line(event: Event) -> str | None:
    """One event as a line for `-v`."""
    said = _said(event)
    return f"{sanitize(event.path)}{said}" if said is not None else None


def _said(event: Event) -> str | None:
    match event:
        case CallStartedEvent():
            return f": called with {shorten_middle(_bare(event.input))}"
        case CallFinishedEvent():
            return f": {event.status}" + (f": {shorten_middle(event.output)}" if event.output is not None else "")
        case ToolCallEvent():
            return f" > {call_text(event.tool_name, event.args)}"
        case ToolResultEvent():
            return f" < {sanitize(event.tool_name)}: {event.status}: {shorten_middle(event.result)}"
        case ApprovalRequestedEvent():
            why = shorten_middle(event.rule or event.reason or "by default")
            return f" ? {sanitize(event.tool_name)} needs approval: {why}"
        case ApprovalResolvedEvent():
            said = "allowed" if event.decision == "allow" else "denied"
            return f" ? {sanitize(event.tool_name)} {said} {_BY.get(event.by, f'by {event.by}')}"
        case RetryEvent():
            return f": retry {event.attempt} in {event.delay:g} s: {shorten_middle(event.error)}"
        case HandoffEvent():
            return f": handed over to {sanitize(event.target)}: {shorten_middle(event.reason)}"
        case _:
            return None


def _bare(value: object) -> object:
    """The text of an input that is nothing but text."""
    if isinstance(value, dict) and set(value) <= {"input", "attachments"} and not value.get("attachments"):  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return value.get("input", "")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def warning_line(event: WarningEvent) -> str:
    """What a person should know, as a line."""
    return paragraph(event.message, agent_path=event.path, label="warning")


def summary_line(result: RunResult, seconds: float) -> str:
    """The last line of a run: how it ended, and what it took.

    Example:
        >>> summary_line(RunResult("completed", "x", "r", steps=1), 0.25)
        'completed: 1 step, 0 tokens, 0.2 s'
    """
    usage = result.usage
    parts = [_count(result.steps, "step"), _count(usage.total_tokens, "token")]
    if usage.tool_calls:
        parts.insert(1, _count(usage.tool_calls, "tool call"))
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    parts.append(f"{seconds:.1f} s")
    if result.warnings:
        parts.append(_count(len(result.warnings), "warning"))
    return f"{result.status}: {', '.join(parts)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

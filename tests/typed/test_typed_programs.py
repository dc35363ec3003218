"""Programs that use the public API and satisfy a strict type checker: CI runs pyright over this file too."""

from __future__ import annotations

import asyncio
from typing import assert_type

from llm_do import AgentSpec, ApprovalDecision, ApprovalRequest, Event, RunResult, run
from llm_do.runtime.record.events.run_events import RunFinishedEvent, WarningEvent
from llm_do.runtime.record.events.tool_events import ToolCallEvent


def describe(event: Event) -> str:
    """Distinguish events by their type, one at a time."""
    if event.type == "tool_call":
        assert_type(event, ToolCallEvent)
        return f"calls {event.tool_name} with {sorted(event.args)}"
    if event.type == "text_done":
        return f"says {event.text}"
    if event.type == "run_finished":
        assert_type(event, RunFinishedEvent)
        return f"ends with {event.output}"
    return event.path


def matched(event: Event) -> str:
    """The same in a `match` statement."""
    match event.type:
        case "tool_result":
            return f"{event.tool_name} is over"
        case "warning":
            assert_type(event, WarningEvent)
            return event.message
        case _:
            return event.path


def shout(text: str) -> str:
    """Shout a text."""
    return text.upper()


def approve(request: ApprovalRequest) -> ApprovalDecision:
    """A plain function."""
    return ApprovalDecision("once" if request.tool_name == "shout" else "deny")


async def approve_later(request: ApprovalRequest) -> ApprovalDecision:
    """An async function."""
    return approve(request)


CRIER = AgentSpec("crier", tools=[shout], model="test")


def test_the_type_of_an_event_says_which_attributes_it_has() -> None:
    async def main() -> list[str]:
        return [f"{describe(event)}, {matched(event)}" async for event in run.stream(CRIER, "Go", approvals=approve)]

    lines = asyncio.run(main())

    assert "calls shout with ['text'], crier" in lines
    assert "crier, shout is over" in lines
    assert 'ends with {"shout":"A"}, crier' in lines


def test_an_approval_function_may_be_plain_or_async() -> None:
    plain = run.sync(CRIER, "Go", approvals=approve)
    later = run.sync(CRIER, "Go", approvals=approve_later)

    assert_type(plain, RunResult)
    assert plain.output == later.output == '{"shout":"A"}'

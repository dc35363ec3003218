"""Messages as plain values: complete, immutable, and convertible to JSON."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import ImageUrl, ModelRequest, RetryFeedbackPart, RetryInfo, UserPromptPart

from llm_do import Swarm, ToolError
from llm_do.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage, to_messages
from tests.flows.flow_runs import run_flow
from tests.support.runs import agent
from tests.support.scripted import call, script


def divide(a: float, b: float) -> float:
    """Divide."""
    if b == 0:
        raise ToolError("cannot divide by zero")
    return a / b


def test_messages_of_a_complete_run_are_converted() -> None:
    a = agent(
        "a",
        script([call("divide", '{"a": 1, "b": 0}', "c1"), call("divide", {"a": 4, "b": 2}, "c2")], "two"),
        tools=[divide],
        instructions="Divide.",
    )
    result = run_flow(Swarm([a, agent("b", script("done"), instructions="End.")]))

    assert to_messages(result.messages) == [
        SystemMessage(content="Divide."),
        UserMessage(content="go"),
        AssistantMessage(
            tool_calls=(
                ToolCall(id="c1", name="divide", arguments='{"a":1,"b":0}'),
                ToolCall(id="c2", name="divide", arguments='{"a":4,"b":2}'),
            )
        ),
        ToolResult(
            tool_call_id="c1", tool_name="divide", content="cannot divide by zero", error="cannot divide by zero"
        ),
        ToolResult(tool_call_id="c2", tool_name="divide", content="2.0"),
        AssistantMessage(content="two"),
        SystemMessage(content="End."),
        UserMessage(content="two"),
        AssistantMessage(content="done"),
    ]


def test_messages_round_trip_through_json() -> None:
    messages: list[Message] = [
        UserMessage(content="hi"),
        AssistantMessage(content="ho", tool_calls=(ToolCall(id="c", name="t", arguments="{}"),)),
        ToolResult(tool_call_id="c", tool_name="t", content="r"),
        SystemMessage(content="s"),
    ]
    adapter = TypeAdapter(list[Message])

    assert adapter.validate_json(adapter.dump_json(messages)) == messages


def test_messages_are_frozen_and_strict() -> None:
    message = UserMessage(content="hi")

    with pytest.raises(ValidationError):
        message.content = "ho"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        UserMessage(content="hi", colour="red")  # type: ignore[call-arg]


def test_attachments_and_retries_are_represented() -> None:
    history = [
        ModelRequest([UserPromptPart(["Look:", ImageUrl("https://example.com/a.png")])]),
        ModelRequest([RetryFeedbackPart("Say it as JSON.", retry=RetryInfo(cause="output"))]),
    ]

    first, second = to_messages(history)
    assert first == UserMessage(content="Look:\n[ImageUrl]")
    assert isinstance(second, UserMessage)
    assert "Say it as JSON." in second.content

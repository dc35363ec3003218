"""Conversations: the messages a run continues from and the messages it returns."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from llm_do import InputError, ModelUnavailableError
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def test_continuing_a_conversation_never_changes_the_earlier_result() -> None:
    model = script("answer")
    runtime = runtime_of([agent("main", model)])
    first = asyncio.run(runtime.run("one"))
    before = list(first.messages)
    second = asyncio.run(runtime.run("two", execution_context=first.execution_context))
    third = asyncio.run(runtime.run("three", messages=second.messages))

    assert first.messages == before
    assert list(first.execution_context.messages) == before
    assert second.messages[:2] == before
    assert len(third.messages) == 6
    assert [sum(isinstance(message, ModelResponse) for message in asked.messages) for asked in model.asked] == [0, 1, 2]


def test_a_nested_agent_starts_a_new_conversation_each_time() -> None:
    inner = agent("inner", script("in"))
    main = agent("main", script([call("inner", input="1")], [call("inner", input="2")], "fin"), toolsets=[inner])
    carry_out(runtime_of([main, inner]))

    assert [len(asked.messages) for asked in inner.model.asked] == [1, 1]


def test_a_history_survives_json() -> None:
    runtime = runtime_of([agent("main", script([call("up", text="a")], "fin"), tools=[_named_up])])
    first = asyncio.run(runtime.run("one"))
    read = ModelMessagesTypeAdapter.validate_python(json.loads(json.dumps(first.to_dict()))["messages"])

    assert asyncio.run(runtime.run("two", messages=read)).output == "fin"


def _named_up(text: str) -> str:
    return text.upper()


_named_up.__name__ = "up"


def test_an_agent_that_cannot_start_loses_no_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = agent("main", script("answer"))
    runtime = runtime_of([spec])
    first = asyncio.run(runtime.run("one"))
    spec.model = "openai:gpt-5"
    failed = carry_out(runtime, "two", execution_context=first.execution_context)
    spec.model = script("again")
    third = carry_out(runtime, "three", messages=failed.error.messages)

    assert isinstance(failed.error, ModelUnavailableError)
    assert failed.messages == list(failed.execution_context.messages) == failed.error.messages == first.messages
    assert len(third.messages) == 4


@each_row(
    "given, message",
    [
        ({"messages": [{"kind": "request", "parts": []}]}, "message 0 is not a conversation message: role"),
        ({"messages": "hello"}, "message 0 is not a conversation message but a str"),
        ({"messages": 7}, "message 0 is not a conversation message but a int"),
        ({"execution_context": {"messages": []}}, "execution_context is a dict"),
    ],
)
def test_invalid_messages_are_rejected_before_anything_runs(given: Any, message: str) -> None:
    model = script("x")

    with pytest.raises(InputError, match=message):
        carry_out(runtime_of([agent("main", model)]), **given)
    assert model.asked == []

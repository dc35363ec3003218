"""Messages of `llm_do.messages` and of OpenAI's format become a history that a run continues, and back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse

from llm_do import ExecutionContext, InputError, Toolkit, Usage
from llm_do.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
    from_messages,
    to_messages,
)
from llm_do.threads import ConversationManager, memory_store
from tests.support.history import strict
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

TALK = [
    SystemMessage(content="Be kind."),
    UserMessage(content="What is the weather?"),
    AssistantMessage(
        content="Let me look.", tool_calls=(ToolCall(id="c1", name="weather", arguments='{"city":"Oslo"}'),)
    ),
    ToolResult(tool_call_id="c1", tool_name="weather", content="Sunny."),
    AssistantMessage(content="It is sunny."),
]
OPENAI = [
    {"role": "developer", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "What is the weather?"}], "name": "ann"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "refusal": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Sunny."},
    {"role": "assistant", "content": "It is sunny.", "refusal": None, "annotations": []},
]


@pytest.mark.parametrize("messages", [TALK, OPENAI, [message.model_dump() for message in TALK]])
def test_messages_of_each_form_are_the_same_history(messages: list[Any]) -> None:
    history = from_messages(messages)

    assert [type(message) for message in history] == [ModelRequest, ModelResponse, ModelRequest, ModelResponse]
    assert to_messages(history) == TALK
    strict(history)


@pytest.mark.parametrize("messages", [TALK, OPENAI])
def test_a_run_continues_from_them(messages: list[Any]) -> None:
    model = script("You said: Oslo.")
    result = carry_out(runtime_of([agent("main", model)]), "Which city?", messages=messages)

    assert result.output == "You said: Oslo."
    sent = to_messages(model.asked[0].messages)
    assert sent[:5] == TALK
    assert sent[5] == UserMessage(content="Which city?")
    strict(result.messages)


def test_a_results_messages_and_others_can_be_mixed() -> None:
    first = carry_out(runtime_of([agent("main", script("Hi!"))]), "Hello")
    model = script("done")
    carry_out(runtime_of([agent("main", model)]), "go", messages=[*first.messages, UserMessage(content="And you?")])

    sent = to_messages(model.asked[0].messages)
    assert [message.content for message in sent] == ["Hello", "Hi!", "And you?", "go"]  # type: ignore[union-attr]


def test_a_thread_stores_them() -> None:
    async def talk() -> list[Any]:
        manager = ConversationManager(memory_store())
        await manager.add_messages("t", [UserMessage(content="Hello"), AssistantMessage(content="Hi!")])
        return [item.message for item in await manager.get_messages("t")]

    assert to_messages(asyncio.run(talk())) == [UserMessage(content="Hello"), AssistantMessage(content="Hi!")]


def test_a_failed_tool_result_stays_one() -> None:
    failed = ToolResult(tool_call_id="c1", tool_name="weather", content="no such city", error="no such city")
    history = from_messages([*TALK[:3], failed])

    assert to_messages(history)[-1] == failed


WRONG: list[tuple[Any, str]] = [
    (["text"], "message 0 is not a conversation message but a str"),
    ([{"role": "user"}], "message 0 is not a conversation message: content: Field required"),
    ([{"role": "boss", "content": "x"}], "message 0 is not a conversation message: role"),
    ([{"content": "x"}], "message 0 is not a conversation message: role"),
    ([TALK[1], {"role": "tool", "tool_call_id": "c9", "content": "x"}], "message 1 is the result of a call that no"),
    ([{"role": "user", "content": "x", "mood": "good"}], "mood: Extra inputs are not permitted"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "content: Input should be"),
]


@each_row("messages, text", WRONG)
def test_what_is_no_message_is_named(messages: list[Any], text: str) -> None:
    with pytest.raises(InputError) as raised:
        asyncio.run(runtime_of([agent("main", script("x"))]).run("go", messages=messages))

    assert text in raised.value.message
    assert raised.value.hint is not None


def test_usage_can_be_made_with_its_total() -> None:
    assert Usage(input_tokens=150, output_tokens=50, total_tokens=200) == Usage(input_tokens=150, output_tokens=50)
    assert Usage(total_tokens=200).total_tokens == 200
    assert (Usage(total_tokens=200) + Usage(input_tokens=1)).total_tokens == 201
    assert Usage.from_dict(Usage(input_tokens=3).to_dict()) == Usage(input_tokens=3)


def test_an_execution_context_survives_as_json() -> None:
    desk = Toolkit("desk")

    @desk.tool(enables_states=["in"])
    def login(user: str) -> Any:
        return f"hello {user}", {"user": user}

    runtime = runtime_of([agent("main", script(call("login", user="ann"), "done"), toolsets=[desk])])
    before = carry_out(runtime, "Log in").execution_context
    after = ExecutionContext.from_dict(json.loads(json.dumps(before.to_dict())))

    assert after.to_dict() == before.to_dict()
    assert after.toolkits["desk"].unlocked_states == {"in"}
    model = script("still in")
    result = carry_out(runtime_of([agent("main", model, toolsets=[desk])]), "And now?", execution_context=after)
    assert result.toolkits["desk"].context.get("user") == "ann"
    assert len(model.asked[0].messages) == len(before.messages) + 1

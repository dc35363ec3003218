"""Requests that a provider can't tell apart have one key; any two others have two, however they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, strategies as st
from pydantic_ai import ToolDefinition
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from llm_do.runtime.record.sent_request import RequestReader, SentRequest
from tests.support.tables import each_row

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

READ_FILE = ToolDefinition(name="read_file", parameters_json_schema=SCHEMA, description="Read a file.")


@dataclasses.dataclass(frozen=True)
class Sent:
    """A request as `send` gets it."""

    messages: tuple[ModelMessage, ...]
    model: str = "openai:gpt-5"
    settings: dict[str, Any] | None = None
    tools: tuple[ToolDefinition, ...] = (READ_FILE,)
    instructions: str = "Be brief."

    def read(self, reader: RequestReader) -> SentRequest:
        parameters = ModelRequestParameters(
            function_tools=list(self.tools), instruction_parts=[InstructionPart(self.instructions)]
        )
        settings: Any = self.settings
        return reader.read(self.model, list(self.messages), settings, parameters)

    @property
    def key(self) -> str:
        return self.read(RequestReader()).key


def conversation(call: str = "abc", path: str = "a.txt", result: object = "text", prompt: Any = "Hi") -> Sent:
    return Sent(
        (
            ModelRequest([UserPromptPart(prompt)]),
            ModelResponse([ThinkingPart("hm", signature="s"), ToolCallPart("read_file", {"path": path}, call)]),
            ModelRequest([ToolReturnPart("read_file", result, call)]),
        )
    )


def changed(**fields: Any) -> Sent:
    return dataclasses.replace(conversation(), **fields)


def with_tool(**fields: Any) -> Sent:
    return changed(tools=(dataclasses.replace(conversation().tools[0], **fields),))


DIFFERENT: dict[str, Sent] = {
    "prompt": conversation(prompt="Hi!"),
    "argument": conversation(path="b.txt"),
    "result": conversation(result="other"),
    "result's type": conversation(result={"text": 1}),
    "an attachment": conversation(prompt=["Hi", BinaryContent(b"1", media_type="image/png")]),
    "another attachment": conversation(prompt=["Hi", BinaryContent(b"2", media_type="image/png")]),
    "the type of an attachment": conversation(prompt=["Hi", BinaryContent(b"2", media_type="image/gif")]),
    "data that looks like a message": conversation(result={"timestamp": 1}),
    "other data that looks like a message": conversation(result={"timestamp": 2}),
    "data with an id": conversation(result={"id": 2, "identifier": "x"}),
    "model": changed(model="openai:gpt-5-mini"),
    "setting": changed(settings={"temperature": 0.2}),
    "setting's value": changed(settings={"temperature": 0.3}),
    "max_tokens": changed(settings={"max_tokens": 100}),
    "instructions": changed(instructions="Be brief"),
    "no tools": changed(tools=()),
    "tool's name": with_tool(name="read"),
    "tool's description": with_tool(description="Read a file"),
    "tool's schema": with_tool(parameters_json_schema={**SCHEMA, "required": []}),
    "tool's strictness": with_tool(strict=True),
    "the order of a schema's keys": with_tool(parameters_json_schema=dict(reversed(SCHEMA.items()))),
    "the order of a result's keys": conversation(result={"a": 1, "b": 2}),
    "another order of a result's keys": conversation(result={"b": 2, "a": 1}),
    "one message fewer": changed(messages=conversation().messages[:2]),
    "failed result": changed(
        messages=(
            *conversation().messages[:2],
            ModelRequest([ToolReturnPart("read_file", "text", "abc", outcome="failed")]),
        )
    ),
    "retry": changed(
        messages=(
            *conversation().messages[:2],
            ModelRequest([ToolReturnPart("read_file", "text", "abc", outcome="retried")]),
        )
    ),
}

EQUAL: dict[str, Sent] = {
    "tool call id": conversation(call="xyz"),
    "a signature, and a provider's ids": changed(
        messages=(
            conversation().messages[0],
            ModelResponse(
                [
                    ThinkingPart("hm", signature="another", id="rs_1", provider_details={"item_id": "x"}),
                    ToolCallPart("read_file", {"path": "a.txt"}, "abc", id="fc_1"),
                ]
            ),
            conversation().messages[2],
        )
    ),
    "a time-out": changed(
        settings={"timeout": 3, "extra_headers": {"x": "y"}, "max_retries": 0, "base_url": "http://h"}
    ),
    "a setting that isn't set": changed(settings={"temperature": None}),
    "arguments as text": changed(
        messages=(
            conversation().messages[0],
            ModelResponse([ThinkingPart("hm", signature="s"), ToolCallPart("read_file", '{ "path":"a.txt" }', "abc")]),
            conversation().messages[2],
        )
    ),
    "what a response says of itself": changed(
        messages=(
            conversation().messages[0],
            ModelResponse(
                conversation().messages[1].parts,  # pyright: ignore[reportArgumentType]
                usage=RequestUsage(input_tokens=5),
                timestamp=datetime(2020, 1, 1, tzinfo=UTC),
                provider_url="http://elsewhere",
                provider_response_id="r1",
                model_name="m",
                finish_reason="tool_call",
                run_id="1",
            ),
            conversation().messages[2],
        )
    ),
}


@each_row("name", DIFFERENT)
def test_what_a_provider_would_answer_differently_has_another_key(name: str) -> None:
    others = {other: sent.key for other, sent in DIFFERENT.items() if other != name}
    assert DIFFERENT[name].key != conversation().key
    assert DIFFERENT[name].key not in others.values()


@each_row("name", EQUAL)
def test_what_a_provider_does_not_see_changes_no_key(name: str) -> None:
    assert EQUAL[name].key == conversation().key


def test_settings_count_in_any_order() -> None:
    one, other = {"temperature": 0.1, "seed": 2}, {"seed": 2, "temperature": 0.1}

    assert changed(settings=one).key == changed(settings=other).key


def test_a_key_is_the_same_after_a_round_trip_through_data() -> None:
    sent = DIFFERENT["another attachment"].read(RequestReader())

    assert SentRequest.of(sent.setup, sent.messages) == sent


def test_a_schema_that_is_changed_in_place_is_read_again() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    sent, reader = with_tool(parameters_json_schema=schema), RequestReader()
    before = sent.read(reader).key
    schema["properties"] = {"x": {"type": "string"}}

    assert sent.read(reader).key != before


TEXT = st.text(max_size=8)
PARTS: st.SearchStrategy[Callable[[str], Any]] = st.sampled_from(
    [
        lambda text: ModelRequest([UserPromptPart(text)]),
        lambda text: ModelRequest([ToolReturnPart("t", text, text)]),
        lambda text: ModelRequest([ToolReturnPart("t", {"v": text}, "c"), UserPromptPart(text)]),
        lambda text: ModelResponse([TextPart(text)]),
        lambda text: ModelResponse([ToolCallPart("t", {"a": text}, text), TextPart(text)]),
    ]
)
HISTORIES = st.lists(st.builds(lambda make, text: make(text), PARTS, TEXT), min_size=1, max_size=8)


@given(HISTORIES, st.lists(st.integers(0, 8), max_size=6), HISTORIES)
def test_a_reader_that_remembers_reads_what_one_that_does_not_reads(
    history: list[ModelMessage], cuts: list[int], tail: list[ModelMessage]
) -> None:
    reader = RequestReader()
    for cut in cuts:
        sent = Sent((*history[:cut], *tail[: cut // 2]))
        assert sent.read(reader) == sent.read(RequestReader())


@given(HISTORIES, HISTORIES)
def test_two_histories_have_one_key_only_if_their_messages_are_the_same(
    one: list[ModelMessage], other: list[ModelMessage]
) -> None:
    first, second = Sent(tuple(one)).read(RequestReader()), Sent(tuple(other)).read(RequestReader())

    assert (first.key == second.key) == (list(first.messages) == list(second.messages))


def test_secrets_and_masks_go_before_the_key() -> None:
    reader = RequestReader(lambda text: text.replace("sk-1", "[redacted]").replace("sk-2", "[redacted]"))
    one, two = conversation(result="sk-1").read(reader), conversation(result="sk-2").read(reader)

    assert one.key == two.key
    assert "sk-" not in str(one)

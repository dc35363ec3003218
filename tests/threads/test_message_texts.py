"""Messages as text: the same whatever their kind, and however many a process has written."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from llm_do.threads.store.codec import message_of, message_text
from tests.threads.thread_support import user_text

PICTURE = BinaryContent(b"\xff\x00\xfe", media_type="image/png")

MANY = 200

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True, scope="module")
def many_written() -> None:
    """Write as many messages as a process that has had some runs."""
    for _ in range(MANY):
        message_text(user_text("hello"))


def by_adapter(message: ModelMessage) -> str:
    return ModelMessagesTypeAdapter.dump_json([message])[1:-1].decode()


def test_every_kind_of_part_is_written_as_by_the_adapter() -> None:
    request = ModelRequest(
        [
            SystemPromptPart("Be brief."),
            UserPromptPart(["look", PICTURE, ImageUrl("https://example.com/a.png")]),
            ToolReturnPart("look", {"at": datetime(2026, 1, 2, tzinfo=UTC), "size": 3, "data": b"\xff"}, "call"),
            ToolReturnPart("picture", PICTURE, "other", metadata={"n": math.inf}),
        ],
        instructions="Answer.",
        metadata={"a": 1},
    )
    response = ModelResponse(
        [
            ThinkingPart("hm", signature="s"),
            TextPart("so\u2028 é", provider_details={"citations": [1]}),
            ToolCallPart("look", {"deep": [1, {"n": -math.inf}]}, "call"),
            ToolCallPart("look", '{"n": 1}', "other"),
            NativeToolCallPart("search", {"q": "x"}, "third"),
            NativeToolReturnPart("search", ["found"], "third"),
            FilePart(PICTURE),
        ],
        usage=RequestUsage(input_tokens=3, output_tokens=4, details={"reasoning": 2}),
        model_name="m",
        finish_reason="stop",
        provider_details={"at": datetime(2026, 1, 2, tzinfo=UTC)},
    )
    for message in (request, response):
        assert message_text(message) == by_adapter(message)
        assert by_adapter(message_of(message_text(message))) == message_text(message)


@settings(max_examples=200, deadline=None)
@given(DATA)
def test_whatever_a_part_holds_is_written_as_by_the_adapter(value: Any) -> None:
    messages: list[ModelMessage] = [
        ModelRequest([ToolReturnPart("t", value, "call")]),
        ModelResponse([ToolCallPart("t", {"value": value}, "call")], metadata={"value": value}),
    ]
    for message in messages:
        try:
            expected = by_adapter(message)
        except ValueError:  # half a character
            continue
        assert message_text(message) == expected


def test_a_value_of_another_type_than_declared_is_written_all_the_same() -> None:
    odd: Any = {"tokens": 1}
    message = ModelResponse([TextPart("x")], usage=odd)
    with pytest.warns(UserWarning, match="Expected `RequestUsage`|unexpected value"):
        text = message_text(message)
    assert '"usage":{"tokens":1}' in text


def test_a_message_of_a_kind_derived_from_one_of_pydantic_ai_is_written() -> None:
    class Own(ModelResponse):
        pass

    message = Own([TextPart("x")])
    assert message_of(message_text(message)).parts == [TextPart("x")]

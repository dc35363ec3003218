"""What a tool returns and what the model receives: text, data and images, within limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import BinaryContent, ToolReturn

from tests.support.history import results_of
from tests.support.runs import agent, carry_out, heard, run_spec, runtime_of
from tests.support.scripted import call, script

SECRET_NUMBER = 42


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    a: int
    b: str


def _cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


RETURNS: dict[str, tuple[Any, str]] = {
    "none": (None, ""),
    "true": (True, "true"),
    "number": (1.5, "1.5"),
    "text": ("hällo", "hällo"),
    "surrogate": ("a\ud800b", "a"),
    "model": (Point(x=1), '{"x":1}'),
    "dataclass": (Pair(1, "z"), '{"a":1,"b":"z"}'),
    "set": ({1}, "[1]"),
    "bytes": (b"ab", "YWI="),
    "not a number": (float("nan"), "null"),
    "object": (SECRET_NUMBER.__class__, "int"),
    "tuple": ((1, "two"), '[1,"two"]'),
}


@pytest.mark.parametrize("kind", list(RETURNS))
def test_a_tools_return_value_reaches_the_model_as_text_or_json(kind: str) -> None:
    value, text = RETURNS[kind]

    def give() -> Any:
        return value

    runtime = runtime_of([agent("main", script([call("give")], "fin"), tools=[give])])
    ear = heard(runtime, "tool_result")

    result = carry_out(runtime)

    assert result.output == "fin"
    [part] = [part for message in result.messages for part in message.parts if part.part_kind == "tool-return"]
    assert part.outcome == "success"
    assert text in part.model_response_str()
    json.dumps([event.to_dict() for event in ear.events])
    json.dumps(result.to_dict())


@pytest.mark.parametrize("value", [_cycle(), Unprintable()], ids=["cycle", "unspeakable"])
def test_a_result_that_cannot_be_serialized_is_a_failure(value: Any) -> None:
    def give() -> Any:
        return value

    result = run_spec(agent("main", script([call("give"), call("add", a=1, b=1)], "fin"), tools=[give, add]))

    assert result.output == "fin"
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["failed", "success"]


BIG = 50 * 1024 * 1024
LARGE = 4 * 1024 * 1024


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "make",
    [
        lambda: "a" * BIG + "END",
        lambda: {"text": "é" * (LARGE // 2), "end": "END"},
        lambda: ToolReturn("a" * LARGE + "END"),
        lambda: [BinaryContent(b"\x89PNG", media_type="image/png"), "a" * LARGE + "END"],
    ],
    ids=["text", "data", "tool return", "beside an image"],
)
def test_a_huge_result_is_truncated_to_head_and_tail(make: Callable[[], Any]) -> None:
    def huge() -> Any:
        return make()

    runtime = runtime_of([agent("main", script([call("huge")], "fin"), tools=[huge])], max_result_bytes=3000)
    ear = heard(runtime, "tool_result")

    result = carry_out(runtime)

    assert result.output == "fin"
    [part] = [part for message in result.messages for part in message.parts if part.part_kind == "tool-return"]
    text = part.model_response_str()
    assert len(text.encode()) < 3300
    assert "END" in text
    assert "bytes left out" in text
    [event] = ear.events
    assert event.size >= LARGE
    assert len(str(event.result)) < 3300


def test_an_image_reaches_the_model() -> None:
    picture = BinaryContent(b"\x89PNG", media_type="image/png")

    def photo() -> Any:
        return picture

    model = script([call("photo")], "fin")
    run_spec(agent("main", model, tools=[photo]))

    assert picture in [part.content for part in model.asked[-1].messages[-1].parts]

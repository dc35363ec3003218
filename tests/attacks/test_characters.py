"""Lone surrogates in the output of models and tools: a run continues, and everything can be stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import Turn, call, script

LONE = "\ud800"


def echo(text: str) -> Any:
    """Say it again."""
    return {"lone": LONE, "inside": {LONE: [LONE]}, "long": LONE * 100_000}.get(text, text)


def fail(text: str) -> str:
    """Fail."""
    raise ValueError(LONE)


@pytest.mark.parametrize(
    "turn",
    [
        f"half {LONE}",
        call("echo", text=LONE),
        call("echo", f'{{"text": "{LONE}"}}'),
        call("echo", '{"text": "\\ud800"}'),
        call("echo", {"text": "x", LONE: 1}),
        call(f"e{LONE}", text="x"),
        call("echo", {"text": "x"}, f"id{LONE}"),
        call("echo", text="lone"),
        call("echo", text="inside"),
        call("echo", text="long"),
        call("fail", text="x"),
    ],
)
def test_a_lone_surrogate_does_not_end_a_run(tmp_path: Path, turn: Turn) -> None:
    runtime = runtime_of([agent("main", script(turn, "end"), tools=[echo, fail])], root=tmp_path, record=True)
    heard(runtime, "text")  # Makes it stream; this model's double fails at counting a whole response like these.
    result = carry_out(runtime)
    assert result.status == "completed", result.errors
    json.dumps(result.to_dict(), ensure_ascii=False).encode()


def test_events_have_no_lone_surrogates() -> None:
    runtime = runtime_of(
        [agent("main", script(call("echo", text="inside"), call("fail", text="x"), f"half {LONE}"), tools=[echo, fail])]
    )
    ear = heard(runtime)
    assert carry_out(runtime).output == "half \ufffd"
    for event in ear.events:
        json.dumps(event.to_dict(), ensure_ascii=False).encode()
    assert {"tool_call", "tool_result", "text_done"} <= set(ear.types)


def test_a_surrogate_pair_split_across_chunks_is_one_character() -> None:
    runtime = runtime_of([agent("main", script("\ud83d\ude00"))])
    ear = heard(runtime, "text_done")
    assert carry_out(runtime).output == "😀"
    assert [event.text for event in ear.events] == ["😀"]

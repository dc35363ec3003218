from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.errors import BudgetError, LlmDoError
from llm_do.runtime.record.events.event import EVENT_TYPES, Event, event_from_dict
from llm_do.runtime.record.events.model_events import RetryEvent, TextDoneEvent, TextEvent, ThinkingEvent, UsageEvent
from llm_do.runtime.record.events.run_events import (
    CallFinishedEvent,
    CallStartedEvent,
    HandoffEvent,
    RunFailedEvent,
    RunFinishedEvent,
    RunStartedEvent,
)
from llm_do.runtime.record.events.tool_events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    StateChangedEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from llm_do.runtime.record.results import RunResult, Usage, WarningRecord
from llm_do.ui.live.display import Display
from llm_do.ui.live.event_lines import describe, event_line, summary_line
from llm_do.ui.reports.error_text import error_text, paragraph
from llm_do.ui.terminal.text_width import call_text, shorten_middle, truncate, wrap
from scripts.pages import samples
from tests.support.tables import each_row


def test_a_note_on_a_projects_own_error_is_shown() -> None:
    error = ValueError("no ink")
    assert error_text(error) == "error: ValueError: no ink."
    error.add_note("raised by the hook begin at start (hooks.py:3)")
    expected = "error: ValueError: no ink. Raised by the hook begin at start (hooks.py:3). --debug shows the traceback."
    assert error_text(error) == expected


def event(kind: type[Any], path: str = "main", call_id: str = "c1", **data: Any) -> Any:
    return kind(
        seq=0, time=0.0, run_id="r", call_id=call_id, parent_call_id=None, agent_name="main", path=path, depth=1, **data
    )


LINES = [
    (event(CallStartedEvent, input={"input": "hi", "attachments": []}), "main: called with hi"),
    (event(CallStartedEvent, input={"company": "Acme"}), 'main: called with {"company":"Acme"}'),
    (event(CallFinishedEvent, status="completed", output="x"), "main: completed: x"),
    (event(CallFinishedEvent, status="failed", output=None), "main: failed"),
    (
        event(ToolCallEvent, tool_name="add", tool_call_id="t", args={"a": 1, "b": "x"}),
        'main > add(a=1, b="x")',
    ),
    (event(ToolCallEvent, tool_name="add", tool_call_id="t", args='{"a": 1'), 'main > add({"a": 1)'),
    (event(ToolCallEvent, tool_name="add", tool_call_id="t", args='{"a": 1}'), "main > add(a=1)"),
    (
        event(
            ToolResultEvent,
            tool_name="add", tool_call_id="t", status="failed", result="no\x1b[2J", duration=1.0, size=2,
        ),
        "main < add: failed: no\\x1b[2J",
    ),
    (
        event(ApprovalRequestedEvent, tool_name="add", tool_call_id="t", args={}, rule="add"),
        "main ? add needs approval: rule add",
    ),
    (
        event(
            ApprovalRequestedEvent,
            tool_name="add", tool_call_id="t", args={}, rule=None, reason="add needs approval by default",
        ),
        "main ? add needs approval by default",
    ),
    (
        event(
            ApprovalRequestedEvent,
            tool_name="add", tool_call_id="t", args={}, rule=None, reason="it is expensive",
        ),
        "main ? add needs approval: it is expensive",
    ),
    (
        event(ApprovalResolvedEvent, tool_name="add", tool_call_id="t", decision="deny", by="person"),
        "main ? add denied by a person",
    ),
    (
        event(ApprovalResolvedEvent, tool_name="add", tool_call_id="t", decision="allow", by="remembered"),
        "main ? add allowed by the answer to another",
    ),
    (
        event(ApprovalResolvedEvent, tool_name="add", tool_call_id="t", decision="deny", by="cancelled"),
        "main ? add denied since the run ended first",
    ),
    (event(RetryEvent, attempt=1, delay=0.5, error="429"), "main: retry 1 in 0.5 s: 429"),
    (event(HandoffEvent, source="main", target="b", reason="why"), "main: handed over to b: why"),
    (event(UsageEvent, usage={}), None),
    (event(TextEvent, text="x"), None),
]  # fmt: skip


def test_each_shown_event_is_one_line() -> None:
    assert [event_line(one) for one, _ in LINES] == [line for _, line in LINES]


@each_row("kind", EVENT_TYPES)
def test_every_event_type_has_a_description_and_can_be_read_back(kind: str) -> None:
    data = samples.events()[kind]

    read = event_from_dict(json.loads(json.dumps(data)))

    assert read is not None
    assert read.to_dict() == data
    words = describe(read)
    assert words.isprintable()
    assert words[:1] not in ("", "{")


def test_unknown_events_are_skipped_and_unknown_fields_ignored() -> None:
    data = event(TextEvent, text="x").to_dict()

    assert event_from_dict({**data, "type": "dreamt"}) is None
    assert event_from_dict({name: value for name, value in data.items() if name != "text"}) is None
    assert event_from_dict({**data, "colour": "red"}) == event(TextEvent, text="x")


@each_row(
    "one, words",
    [
        (event(RunStartedEvent, entry="main", input={"input": "hi"}), "started with hi"),
        (event(RunFinishedEvent, status="completed", output="x"), "completed: x"),
        (event(RunFailedEvent, status="failed", error={"message": "no ink"}), "failed: no ink"),
        (event(ThinkingEvent, text="a\nb"), "a\\nb"),
        (event(StateChangedEvent, toolkit="door", updates={"a": 1}, states=[]), 'door: {"a":1}'),
        (
            event(UsageEvent, usage={"input_tokens": 1200, "output_tokens": 34, "cost_usd": 0.01234}),
            "1,234 tokens, $0.0123",
        ),
    ],
)
def test_events_without_a_line_have_a_description(one: Event, words: str) -> None:
    assert describe(one) == words


@given(st.text(), st.text())
def test_no_text_can_add_a_line(path: str, text: str) -> None:
    line = event_line(event(ToolCallEvent, path, tool_name=text, tool_call_id="t", args={text: text}))

    assert line is not None
    assert line.isprintable()


@given(st.text(max_size=400), st.integers(2, 80))
def test_shortened_text_never_exceeds_the_limit(text: str, limit: int) -> None:
    assert len(shorten_middle(text, limit)) <= limit
    assert len(call_text("f", {"a": text}, limit)) <= limit + 3


@given(st.text(alphabet="日本語abc", max_size=100), st.integers(2, 60))
def test_wrapping_loses_nothing_and_truncated_text_fits(text: str, columns: int) -> None:
    assert "".join(wrap(text, columns)) == text
    assert sum(2 if char > "z" and char != "…" else 1 for char in truncate(text, columns)) <= columns


def test_the_summary_counts_steps_calls_tokens_and_cost() -> None:
    usage = Usage(requests=2, tool_calls=1, input_tokens=1200, output_tokens=34, cost_usd=0.01234)

    line = summary_line(RunResult("limited", None, "r", usage=usage, steps=2), 3.14)

    assert line == "limited: 2 steps, 1 tool call, 1,234 tokens, $0.0123, 3.1 s"


@pytest.mark.parametrize(("number", "end"), [(0, "1.0 s"), (1, "1.0 s, 1 warning"), (2, "1.0 s, 2 warnings")])
def test_the_summary_ends_with_the_number_of_warnings(number: int, end: str) -> None:
    warnings = [WarningRecord(f"no server {n}", "main") for n in range(number)]

    assert summary_line(RunResult("completed", "x", "r", warnings=warnings), 1.0) == (
        f"completed: 0 steps, 0 tokens, {end}"
    )


def test_an_error_is_one_paragraph_with_location_and_hint() -> None:
    error = BudgetError("the budget\nis  spent", hint="raise `budget`", agent_path="main/a", file="x.py", line=3)

    assert error_text(error) == "error: the budget is spent (main/a, x.py:3). Raise `budget`."
    assert error_text(LlmDoError("main/a failed", agent_path="main/a")) == "error: main/a failed."
    assert error_text(KeyError("x")) == "error: KeyError: 'x'."
    assert error_text(ValueError()) == "error: ValueError."
    assert paragraph("a\x1b[2J\u202e", label="warning") == "warning: a\\x1b[2J\\u202e."


def test_events_during_a_question_are_shown_after_it() -> None:
    written: list[str] = []
    display = Display(written.append, 1)

    display.line("before")
    display.hold()
    display.on_event(LINES[2][0])
    assert written == ["before\n"]
    display.release()

    assert written == ["before\n", "main: completed: x\n"]


def test_streamed_text_of_several_agents_is_kept_apart() -> None:
    written: list[str] = []
    display = Display(written.append, 2)

    for path, call_id, text in (
        ("main", "c1", "one "),
        ("main", "c1", "two\n"),
        ("main/b", "c2", "x"),
        ("main", "c1", "y"),
    ):
        display.on_event(event(TextEvent, path, call_id, text=text))
    display.on_event(event(TextDoneEvent, "main", "c1", text="one two\ny"))
    display.on_event(event(TextDoneEvent, "main", "c3", text="all of it"))
    display.end()

    assert "".join(written) == "main | one two\nmain | \nmain/b | x\nmain | y\nmain | all of it\n"

"""What a run's models were sent, for people and for programs: first what is new in each request."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import exceptions

from llm_do import Toolkit
from llm_do.threads import memory_store
from llm_do.ui.live.sent_requests import SentRequests
from tests.support.runs import agent, carry_out
from tests.support.scripted import call, script
from tests.threads.thread_support import add, done, runtime_on


def requests_of(*specs: Any, input: Any = "1 and 2") -> SentRequests:
    store = memory_store()
    result = carry_out(runtime_on(store, *specs, options={"record": True}), input)
    return SentRequests(done(store.exchanges(result.run_id)))


def adding(*turns: Any, **fields: Any) -> Any:
    return agent("main", script(*(turns or (call("add", a=1, b=2), "Three."))), instructions="Add.", **fields)


def body(lines: list[str]) -> list[str]:
    """The lines without those of times."""
    return [line for line in lines if not line[:1].isdigit()]


def test_each_request_has_what_is_new_in_it_and_the_answer() -> None:
    sent = requests_of(adding(tools=[add]))

    lines = sent.lines()

    assert [line.partition("  ")[0] for line in lines if line[:1].isdigit()] == [
        "1. request 1 of main",
        "2. request 2 of main",
    ]
    assert [line for line in body(lines) if '"parameters"' not in line] == [
        "instructions",
        "  Add.",
        "tool add",
        "user",
        "  1 and 2",
        "answer",
        "  calls add (call_1)",
        '    {"a": 1, "b": 2}',
        "",
        "result of add (call_1)",
        "  3",
        "answer",
        "  text",
        "    Three.",
    ]


def test_one_request_has_all_that_was_sent() -> None:
    sent = requests_of(adding(tools=[add]))

    lines = body(sent.lines_of(2))

    assert lines[:4] == ["result of add (call_1)", "  3", "", "all that was sent:"]
    assert "  Add." in lines
    assert lines[lines.index("user") : lines.index("user") + 6] == [
        "user",
        "  1 and 2",
        "calls add (call_1)",
        '  {"a": 1, "b": 2}',
        "result of add (call_1)",
        "  3",
    ]
    assert lines[-3:] == ["answer", "  text", "    Three."]


def test_a_retry_is_the_same_request_and_says_why() -> None:
    failure = exceptions.ModelHTTPError(503, "m", body={"error": "overloaded"}, retry_after=0.0)

    lines = requests_of(adding(failure, "Three.")).lines()

    assert "failed: HTTP 503: overloaded" in lines
    assert "the same as request 1" in lines
    assert any(line.startswith("2. request 1 of main, attempt 2") for line in lines)


def test_text_of_a_model_cannot_touch_the_terminal() -> None:
    lines = requests_of(adding("\x1b[2Jgone \u202eright")).lines()

    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def test_changed_tools_are_shown_as_a_diff() -> None:
    door = Toolkit("door")

    @door.tool(approval="allow", enables_states=["open"])
    def unlock() -> str:
        """Unlock it."""
        return "unlocked"

    @door.tool(approval="allow", required_states=["open"])
    def enter() -> str:
        """Go in."""
        return "in"

    lines = requests_of(adding(call("unlock"), "In.", toolsets=[door])).lines()

    assert "tools changed:" in lines
    assert '  +  "name": "enter",' in lines


def test_programs_get_what_is_new_and_on_demand_all_of_it() -> None:
    sent = requests_of(adding(tools=[add]))

    first, second = sent.to_data()

    assert (first["previous"], first["kept"], first["new"]["setup"]["instructions"]) == (None, 0, "Add.")
    assert (second["previous"], second["kept"], second["new"]["setup"]) == (1, 2, {})
    assert second["new"]["messages"][0]["parts"][0]["content"] == 3
    assert second["response"]["parts"] == [{"content": "Three.", "part_kind": "text"}]
    whole = sent.data_of(2)
    assert whole["sent"]["messages"] == [*first["new"]["messages"], first["response"], *second["new"]["messages"]]
    json.dumps(whole)

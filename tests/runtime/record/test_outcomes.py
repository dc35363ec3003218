"""Outcomes survive a round trip through JSON and match what the event and the model got."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import BinaryContent, ImageUrl, ToolReturn
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do.machines.machine import ToolkitState
from llm_do.policy.values import Decision
from llm_do.runtime.record.outcomes import CallOutcome, StateChange, ToolOutcome, ToolOutput
from llm_do.runtime.record.results import ErrorRecord, Usage
from llm_do.runtime.tools.tool_output import limit_output
from tests.support.tables import each_row

PDF = BinaryContent(b"%PDF\xff", media_type="application/pdf")
PICTURE = ImageUrl("https://example.org/a.png")


def read_back(outcome: ToolOutcome) -> ToolOutcome:
    """Return the outcome after a round trip through JSON text."""
    return ToolOutcome.from_dict(json.loads(json.dumps(outcome.to_dict(), allow_nan=False)))


@each_row(
    "value",
    [
        None,
        True,
        3,
        1.5,
        float("nan"),
        "text",
        "a" * 2000,
        "lone \ud800 surrogate",
        {"a": [1, {"b": None}]},
        {"kind": "binary", "data": "not media"},
        PDF,
        [PDF, "and", {"a": 1}],
        PICTURE,
        ToolReturn("shown", content=["see", PICTURE], metadata={"k": 1}),
    ],
)
def test_the_models_output_round_trips(value: Any) -> None:
    outcome = ToolOutcome("look", "1", "success", limit_output(value, 1000), duration=0.25)

    again = read_back(outcome)

    assert again == outcome
    assert again.event_data() == outcome.event_data()


def test_a_failure_round_trips_with_its_location_and_decision() -> None:
    error = ErrorRecord("ValueError", "no such city", "main/weather", "tools.py", 12)
    decision = Decision("allow", "allow", "the rule weather allows it", rule="weather", place="project.json:4")
    outcome = ToolOutcome("weather", "1", "failed", ToolOutput.of_text("no such city"), error, decision)

    assert read_back(outcome) == outcome


def test_state_changes_round_trip() -> None:
    state = ToolkitState.from_dict({"context": {"user": "ann"}, "unlocked_states": ["in"]})
    change = StateChange("shop", {"user": "ann"}, state)

    [again] = read_back(ToolOutcome("login", "1", "success", ToolOutput.of_text("hello"), changes=(change,))).changes

    assert (again.toolkit, again.updates, again.state.to_dict()) == ("shop", {"user": "ann"}, state.to_dict())


def test_an_output_that_is_the_same_for_events_is_written_once() -> None:
    assert "for_model" not in limit_output({"a": 1}, 1000).to_dict()
    assert "for_model" in limit_output(PDF, 1000).to_dict()


@pytest.mark.parametrize(
    "outcome",
    [
        CallOutcome("r.1", "main/critic", "completed", {"score": [1, None]}, usage=Usage(requests=1, cost_usd=0.5)),
        CallOutcome("r", "main", "limited", error=ErrorRecord("BudgetError", "used up", "main", "main.agent", 3)),
        CallOutcome(
            "r.1",
            "main",
            "completed",
            "hello",
            steps=1,
            messages=[ModelRequest([UserPromptPart("hi")]), ModelResponse([TextPart("hello")])],
        ),
    ],
    ids=["output", "error", "history"],
)
def test_the_outcome_of_a_call_round_trips(outcome: CallOutcome) -> None:
    again = CallOutcome.from_dict(json.loads(json.dumps(outcome.to_dict(), allow_nan=False)))

    assert again == outcome
    assert again.record() == outcome.record()
    assert outcome.event_data() == {"status": outcome.status, "output": outcome.output}

"""Conditional and repeated steps: what runs, with which input, under which path, and where they end."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from llm_do import LimitError, LinkError, RunError, Swarm
from tests.flows.flow_runs import asked, flow_runtime, outline, run_flow, saying, text_of


class Ticket(BaseModel):
    kind: str
    items: list[str] = []
    approved: bool = False


def ticket(kind: str = "question", *items: str, approved: bool = False) -> Ticket:
    """A step that returns a ticket has this output."""
    return Ticket(kind=kind, items=[*items], approved=approved)


def classify(output: Any) -> Any:
    """Create a function step with this output."""

    def classify(text: str) -> Any:
        """Classify."""
        return output

    return classify


@pytest.mark.parametrize(("kind", "expected"), [("refund", "refunds's"), ("question", "answers's")])
def test_a_condition_chooses_the_branch(kind: str, expected: str) -> None:
    refunds, answers = saying("refunds"), saying("answers")
    flow = Swarm(
        [classify(ticket(kind)), refunds, answers],
        steps=["classify", {"when": "output.kind == 'refund'", "then": "refunds", "else": "answers"}],
    )

    result = run_flow(flow)

    assert text_of(result) == expected
    assert result.calls[-1].path == f"swarm/2/{expected.removesuffix(chr(39) + 's')}"
    assert len(asked(refunds)) + len(asked(answers)) == 1


def test_without_else_the_input_is_passed_on() -> None:
    flow = Swarm([saying("a"), saying("b")], steps=[{"when": "output == 'go on'", "then": "a"}, "b"])

    assert asked(_member(flow, "a", "go")) == []
    assert asked(_member(flow, "b", "go")) == ["go", "go"]


def _member(flow: Swarm, name: str, input: str) -> Any:
    assert run_flow(flow, input).status == "completed"
    return flow.members[name]


def test_each_item_is_an_input_and_the_outputs_are_joined_in_their_order() -> None:
    seen: list[str] = []

    def work(text: str) -> str:
        """Work."""
        seen.append(text)
        return text * 2

    flow = Swarm(
        [classify(ticket("x", "a", "b", "c")), work, saying("end", "done")],
        steps=["classify", {"for_each": "output.items", "do": "work", "concurrency": 1}, "end"],
    )

    result = run_flow(flow)

    assert seen == ["a", "b", "c"]
    assert asked(flow.members["end"]) == ["aa\n\nbb\n\ncc"]
    assert [call.path for call in result.calls][1:-1] == ["swarm/2/1/work", "swarm/2/2/work", "swarm/2/3/work"]


def test_no_items_are_no_calls() -> None:
    flow = Swarm([classify(ticket()), saying("work")], steps=["classify", {"for_each": "output.items", "do": "work"}])

    result = run_flow(flow)

    assert (text_of(result), len(result.calls)) == ("", 1)


def test_more_items_than_the_step_takes_end_the_run_before_the_first() -> None:
    flow = Swarm(
        [classify(ticket("x", "a", "b", "c")), saying("work")],
        steps=["classify", {"for_each": "output.items", "do": "work", "at_most": 2}],
    )

    result = run_flow(flow)

    assert (result.status, type(result.error)) == ("limited", LimitError)
    assert "has 3 items" in str(result.error)
    assert asked(flow.members["work"]) == []


def failing(text: str) -> str:
    """Fail for one input."""
    if text == "b":
        raise ValueError("no")
    return text.upper()


def test_a_failed_item_is_collected_like_a_parallel_member() -> None:
    steps: list[Any] = ["classify", {"for_each": "output.items", "do": "failing", "on_error": "collect"}]
    members = [classify(ticket("x", "a", "b", "c")), failing]

    assert text_of(run_flow(Swarm(members, steps=steps))).split("\n\n") == [
        "A",
        "item 2 failed: failing raised ValueError: no",
        "C",
    ]

    steps[1] = {**steps[1], "on_error": "cancel"}
    result = run_flow(Swarm(members, steps=steps))
    assert isinstance(result.error, RunError)
    assert result.error.agent_path == "swarm/2/2/failing"


def test_what_is_no_list_is_an_error_that_names_it() -> None:
    flow = Swarm([classify(ticket()), saying("work")], steps=["classify", {"for_each": "output.kind", "do": "work"}])

    error = run_flow(flow).error

    assert "`output.kind` is text" in str(error)
    assert isinstance(error, RunError)
    assert error.agent_path == "swarm/2"


def test_steps_are_repeated_with_their_last_output_until_the_condition_is_true() -> None:
    draft = saying("draft", "text")
    rounds = iter([False, False, True])

    def review(text: str) -> dict[str, Any]:
        """Review."""
        return {"text": text, "approved": next(rounds)}

    flow = Swarm([draft, review], steps=[{"repeat": "draft >> review", "until": "output.approved", "at_most": 4}])

    result = run_flow(flow)

    assert text_of(result) == {"text": "text", "approved": True}
    assert asked(draft) == ["go", *['{"text": "text", "approved": false}'] * 2]
    assert [call.path for call in result.calls] == [
        f"swarm/1/{number}/{step}" for number in (1, 2, 3) for step in ("1/draft", "2/review")
    ]


def test_a_condition_that_never_becomes_true_ends_the_run() -> None:
    flow = Swarm([saying("draft", "a", "b")], steps=[{"repeat": "draft", "until": "output == 'c'", "at_most": 2}])

    result = run_flow(flow)

    assert (result.status, type(result.error)) == ("limited", LimitError)
    assert "2 times" in str(result.error)
    assert len(asked(flow.members["draft"])) == 2


def test_events_show_each_repetition() -> None:
    rounds = iter("xy")

    def a(text: str) -> str:
        """Work."""
        return next(rounds)

    flow = Swarm([a], steps=[{"repeat": "a", "until": "output == 'y'", "at_most": 3}])

    lines = outline(flow_runtime(flow))

    assert any("swarm/1/1/a" in line for line in lines)
    assert any("swarm/1/2/a" in line for line in lines)


def test_steps_nest() -> None:
    inner = {"when": "output == 'b'", "then": ["b"], "else": {"repeat": "c", "until": "output", "at_most": 1}}
    flow = Swarm(
        [classify(ticket("x", "a", "b")), saying("b"), saying("c")],
        steps=["classify", {"for_each": "output.items", "do": inner}],
        separator="+",
    )

    assert text_of(run_flow(flow)) == "c's+b's"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["a", {"when": "output =", "then": "b"}], "`=` is not an operator"),
        (["a", {"when": "output > 3", "then": "b"}], "the number 3 needs backticks"),
        (["a", {"when": "kind == 'x'", "then": "b"}], "knows only `output`"),
        (["a", {"when": 'output == "x"', "then": "b"}], "double quotes"),
        (["a", {"when": "[output, output]", "then": "b"}], "makes a list"),
        (["a", {"when": "output.x", "then": "b"}], "`output` is text"),
        (["a", {"for_each": "output", "do": "b"}], "needs a list"),
        (["a", {"when": "output", "then": "b >> | c"}], "is missing after"),
        (["a", {"while": "output"}], "must be an expression"),
        (["a", {"repeat": "b", "until": "output"}], "steps.1.at_most: Field required"),
        ([], "at least 1 item"),
        (["a >> b", {"when": "output", "then": "c"}], "`c`"),
    ],
)
def test_malformed_steps_are_refused(steps: Any, message: str) -> None:
    with pytest.raises(LinkError) as caught:
        Swarm([saying("a"), saying("b")], steps=steps)

    assert message in str(caught.value)


def test_an_evaluation_is_bounded() -> None:
    grows = 'output | join(@, `["","","","","","","","","","",""]`)' + ' | join(@, `["","","","","",""]`)' * 12
    flow = Swarm([classify("x" * 100), saying("b")], steps=["classify", {"when": grows, "then": "b"}])

    error = run_flow(flow).error

    assert "takes too long or makes too large a value" in str(error)

"""`ask_user` asks a person and fails at once without one; `todo` keeps a validated list for a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import Runtime
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.ui.reports.explanation import explain_data
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script


def ask(callback: Any, *calls: Any) -> list[tuple[str, str]]:
    """Run an agent that makes these calls and return the outcome and text of each."""
    spec = agent("main", script(list(calls), "done"), toolsets=["ask_user", "todo"])
    result = carry_out(Runtime(project_of([spec]), approvals="prompt", ask_user=callback))
    assert result.status == "completed"
    return [(outcome, text) for _, outcome, text in results_of(result.messages)]


def test_a_question_reaches_the_person_and_the_answer_the_model() -> None:
    asked: list[UserQuestion] = []

    async def person(question: UserQuestion) -> str:
        asked.append(question)
        return "blue"

    assert ask(person, call("ask_user", question="Which?", choices=["red", "blue"])) == [("success", "blue")]
    assert (asked[0].text, asked[0].choices, asked[0].agent, asked[0].agent_path) == (
        "Which?",
        ("red", "blue"),
        "main",
        "main",
    )


def test_an_answer_outside_the_choices_is_marked_as_such() -> None:
    async def person(question: UserQuestion) -> str:
        return "green, please"

    outcomes = ask(person, call("ask_user", question="Which?", choices=["red", "blue"]))
    assert outcomes == [("success", "green, please (none of the choices)")]


def test_without_a_person_to_ask_the_call_fails_at_once() -> None:
    ((outcome, text),) = ask(None, call("ask_user", question="Which?"))
    assert outcome == "failed"
    assert "no one to ask" in text


@pytest.mark.parametrize("answer", [None, 3, ValueError("broken")])
def test_a_callback_that_raises_or_returns_nonsense_is_a_failed_result(answer: Any) -> None:
    async def person(question: UserQuestion) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    ((outcome, text),) = ask(person, call("ask_user", question="Which?"))
    assert outcome == "failed"
    assert "ValueError: broken" in text or "gave no answer" in text


def test_any_callable_can_answer() -> None:
    class Person:
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

        async def __call__(self, question: UserQuestion) -> str:
            return "blue"

    assert ask(Person(), call("ask_user", question="Which?")) == [("success", "blue")]


def test_questions_are_asked_one_at_a_time_and_in_order() -> None:
    seen: list[str] = []

    async def person(question: UserQuestion) -> str:
        seen.append(f"asked {question.text}")
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append(f"answered {question.text}")
        return question.text.upper()

    outcomes = ask(person, *(call("ask_user", question=text) for text in "abc"))
    assert [text for _, text in outcomes] == ["A", "B", "C"]
    assert seen == [f"{what} {text}" for text in "abc" for what in ("asked", "answered")]


def test_a_list_is_stored_and_validated() -> None:
    outcomes = ask(
        None,
        call("todo_list"),
        call("todo_add", items=["plan", "build"]),
        call("todo_update", number=1, status="done"),
        call("todo_update", number=2, status="doing", text="build well"),
        call("todo_add", items=["rest"]),
    )
    assert outcomes[0] == ("success", "Your to-do list is empty.")
    assert outcomes[-1] == ("success", "[x] 1. plan\n[>] 2. build well\n[ ] 3. rest\n2 of 3 left to do.")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (call("todo_update", number=9, status="done"), "no item 9"),
        (call("todo_update", number=0, status="done"), "no item 0"),
        (call("todo_update", number=1), "nothing to change"),
        (call("todo_update", number=2, status="doing"), "item 1 is already in progress"),
        (call("todo_update", number=1, status="later"), "status"),
        (call("todo_add", items=[]), "items"),
        (call("todo_add", items=[""]), "items"),
        (call("todo_add", items=["x"] * 300), "at most 200"),
    ],
)
def test_an_invalid_list_changes_nothing(wrong: Any, why: str) -> None:
    outcomes = ask(
        None,
        call("todo_add", items=["a", "b"]),
        call("todo_update", number=1, status="doing"),
        wrong,
        call("todo_list"),
    )
    assert outcomes[2][0] in ("failed", "retried")
    assert why in outcomes[2][1]
    assert outcomes[3][1] == "[>] 1. a\n[ ] 2. b\n2 of 2 left to do."


def test_each_run_and_each_agent_has_its_own_list() -> None:
    mine = script(call("todo_add", items=["mine"]), lambda messages, _: messages[-1].parts[0].content)
    helper = agent("helper", mine, toolsets=["todo"])
    model = script(call("todo_add", items=["once"]), call("helper", input="go"), call("todo_list"), "done")
    runtime = Runtime(project_of([agent("main", model, toolsets=["todo", helper]), helper]), approvals="prompt")
    for _ in range(2):
        texts = [text for _, _, text in results_of(carry_out(runtime).messages)]
        assert texts == [
            "[ ] 1. once\n1 of 1 left to do.",
            "[ ] 1. mine\n1 of 1 left to do.",
            "[ ] 1. once\n1 of 1 left to do.",
        ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("todo_list", "it changes nothing but the agent's own list"),
        ("ask_user", "it is a question to a person itself"),
        ("critic", "its own calls are decided one by one"),
    ],
)
def test_a_tool_allowed_by_default_gives_its_own_reason(name: str, why: str) -> None:
    critic = agent("critic", script("good"))
    project = project_of([agent("main", script("fin"), toolsets=["todo", "ask_user", critic]), critic])

    assert explain_data(project, ["main", name])["reason"] == f"{name} is allowed by default: {why}"

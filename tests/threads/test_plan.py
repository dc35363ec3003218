"""Plans: the list is validated, each task's status is stored, and a restart resumes where it stopped."""

from __future__ import annotations

import asyncio
from typing import Any

from llm_do import Runtime
from llm_do.flows.plan import tasks_of
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import Registered
from llm_do.runtime.context.call_context import current_call
from llm_do.threads import memory_store
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import script
from tests.support.tables import each_row
from tests.threads.thread_support import record_of


def planning(store: Any, plan: Any, execute: Any, answer: Any = "the answer") -> Runtime:
    specs = [agent("p", script(plan)), agent("e", execute), agent("s", script(answer))]
    runtime = runtime_of(specs, options={"store": store})
    flow = FlowSpec("work", mode="plan", agents=("p", "e", "s"))
    runtime.registry = runtime.registry.extended({"work": Registered("work", "flow", flow)})
    return runtime


def run(runtime: Runtime, text: str = "build it") -> Any:
    return asyncio.run(runtime.execute(text, entry="work", thread_id="t"))


@each_row(
    "answer, tasks",
    [
        ({"items": ["a", "b"]}, ["a", "b"]),
        ({"tasks": [{"task": "a"}, {"title": "b"}]}, ["a", "b"]),
        (["a", " ", "b"], ["a", "b"]),
        ("Plan:\n1. a\n2) b\n", ["a", "b"]),
        ("- [ ] a\n* [x] b", ["a", "b"]),
    ],
)
def test_a_planners_list_is_parsed_in_every_common_form(answer: object, tasks: list[str]) -> None:
    assert tasks_of(answer) == tasks


def test_a_plan_is_executed_task_by_task_and_synthesised() -> None:
    asked: list[str] = []

    def execute(messages: list[Any], info: object) -> str:
        asked.append(str(messages[-1].parts[-1].content))
        return f"result {len(asked)}"

    store = memory_store()
    runtime = planning(store, "- read\n- write", script(execute))
    ear = heard(runtime, "state_changed")

    result = run(runtime)

    assert result.output == "the answer"
    assert [call.path for call in result.calls] == ["work/1/p", "work/2/1/e", "work/2/2/e", "work/3/s"]
    assert "number 1:\nread" in asked[0]
    assert "result 1" in asked[1]
    assert [event.states for event in ear.events] == [
        ["open", "open"],
        ["running", "open"],
        ["done", "open"],
        ["done", "running"],
        ["done", "done"],
    ]
    assert record_of(store).state == {"plans": {}}


def test_the_same_request_resumes_where_the_last_run_stopped() -> None:
    did: list[str] = []

    def execute(messages: list[Any], info: object) -> str:
        text = str(messages[-1].parts[-1].content)
        number = text.partition("number ")[2][0]
        did.append(number)
        if did == ["1", "2"]:
            raise ValueError("the provider is down")
        return f"result {number}"

    store = memory_store()
    runtime = planning(store, "- a\n- b\n- c", script(execute))

    first = run(runtime)
    assert first.status != "completed"
    plan = record_of(store).state["plans"]["work"]
    assert [task["status"] for task in plan["tasks"]] == ["done", "failed", "open"]

    second = run(runtime)
    assert second.output == "the answer"
    assert did == ["1", "2", "2", "3"]
    assert [call.path for call in second.calls] == ["work/2/2/e", "work/2/3/e", "work/3/s"]


def test_a_different_request_makes_a_new_plan() -> None:
    store = memory_store()
    runtime = planning(store, "- a", script(ValueError("down"), "fine"))
    run(runtime)

    result = run(runtime, "something else")

    assert next(call.path for call in result.calls) == "work/1/p"


def test_an_answer_without_tasks_ends_the_run_with_a_reason() -> None:
    result = run(planning(memory_store(), "I would rather not.", script("x")))

    assert "0 tasks" in str(result.error)


def test_a_plan_runs_without_a_thread() -> None:
    def execute(messages: list[Any], info: object) -> str:
        assert current_call().thread.id is None
        return "ok"

    runtime = planning(memory_store(), "- a", script(execute))

    assert asyncio.run(runtime.execute("x", entry="work")).output == "the answer"

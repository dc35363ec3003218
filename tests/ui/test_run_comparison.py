"""Two recorded runs side by side: where they first diverge, and how each ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import exceptions

from llm_do import RunResult, tool
from llm_do.cli.actions.records.stored_requests import compare_runs
from llm_do.errors import UsageError
from llm_do.project.project import RecordSettings
from llm_do.threads import SqliteStore, memory_store
from tests.support.runs import agent, carry_out
from tests.support.scripted import call, script
from tests.threads.thread_support import done, runtime_on


def team(
    *,
    instructions: str = "Lead.",
    helper: str = "three",
    result: int = 3,
    last: Any = "done",
    about: str = "Add.",
    more: tuple[Any, ...] = (),
    temperature: float = 0.0,
) -> tuple[Any, ...]:
    def add(a: int, b: int) -> int:
        return result

    add.__doc__ = about
    allowed = tool(approval="allow")(add)
    helping = agent("helper", script(call("add", a=1, b=2), helper), instructions="Help.", tools=[allowed])
    lead = agent(
        "lead",
        script(call("helper", input="1 and 2"), *more, last),
        instructions=instructions,
        toolsets=["helper"],
        model_settings={"temperature": temperature},
    )
    return lead, helping


def recorded(store: SqliteStore, specs: tuple[Any, ...], input: str = "go", **fields: Any) -> RunResult:
    return carry_out(runtime_on(store, *specs, options={"record": True}, **fields), input)


def compared(store: SqliteStore, one: RunResult, other: RunResult) -> list[str]:
    lines = done(compare_runs(store, one.run_id, other.run_id, as_json=False))
    text = "\n".join(lines).replace(one.run_id[:12], "A").replace(other.run_id[:12], "B")
    return text.splitlines()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("change", "first", "shown"),
    [
        ({"instructions": "Lead.\nBe brief."}, "request 1 of lead: instructions changed", "+Be brief."),
        ({"temperature": 0.5}, "request 1 of lead: setting temperature changed", "+0.5"),
        ({"about": "Sum."}, "request 1 of lead/helper: tool add changed", '+ "description": "Sum.",'),
        ({"result": 4}, "request 2 of lead/helper: result of add changed", "+4"),
        ({"helper": "3"}, "the answer to request 2 of lead/helper: changed", "+  3"),
        ({"last": "Done!"}, "the answer to request 2 of lead: changed", "+  Done!"),
        (
            {"last": exceptions.ModelHTTPError(400, "m", body={"error": "bad"})},
            "the answer to request 2 of lead: changed",
            "+failed: HTTP 400: bad",
        ),
        (
            {"more": (call("helper", input="again"),)},
            "the answer to request 2 of lead: changed",
            "+calls helper (call_2)",
        ),
    ],
)
def test_the_first_difference_is_said_first(change: dict[str, Any], first: str, shown: str) -> None:
    store = memory_store()

    lines = compared(store, recorded(store, team()), recorded(store, team(**change)))

    assert lines[:3] == [first, "  --- A", "  +++ B"]
    assert f"  {shown}" in lines


def test_all_that_changed_in_a_request_is_named() -> None:
    store = memory_store()
    one = recorded(store, team())
    other = recorded(store, team(instructions="Guide.", temperature=1.0), "come")

    lines = compared(store, one, other)

    assert lines[0] == "request 1 of lead: instructions changed, setting temperature changed, input changed"


def test_the_same_runs_differ_in_nothing() -> None:
    store = memory_store()

    lines = compared(store, recorded(store, team()), recorded(store, team()))

    assert lines[0] == "all requests and answers are the same"
    rows = {line[:17].strip(): line[17:].split() for line in lines[2:]}
    assert rows["requests"] == ["4", "4"]
    assert rows["calls of add"] == ["1", "1"]
    assert rows["in lead/helper"][:2] == ["2", "requests,"]
    assert not any(line.startswith("output:") for line in lines)


def test_a_request_that_only_one_run_made_is_named() -> None:
    store = memory_store()

    one = recorded(store, (agent("main", script("x")),))
    other = recorded(store, (agent("other", script("x")),))

    assert compared(store, one, other)[0] == "request 1 of main: only A made it"


def test_calls_of_one_path_are_paired_by_what_they_were_asked() -> None:
    store = memory_store()

    def twice(*inputs: str) -> tuple[Any, ...]:
        echo: Callable[..., Any] = lambda messages, info: f"<{messages[-1].parts[-1].content}>"  # noqa: E731
        lead = agent("lead", script([call("helper", input=each) for each in inputs], "done"), toolsets=["helper"])
        return lead, agent("helper", script(echo))

    lines = compared(store, recorded(store, twice("a", "b")), recorded(store, twice("b", "a")))

    assert lines[0] == "the answer to request 1 of lead: changed"
    parting = json.loads("\n".join(done(compare_runs(store, *(each.id for each in done(store.runs())), as_json=True))))
    assert parting["parting"]["where"] == "the answer to request 1 of lead"


def test_runs_whose_requests_are_gone_are_compared_by_the_rest() -> None:
    store = memory_store()
    one = recorded(store, team(), record_settings=RecordSettings(exchanges=False))

    lines = compared(store, one, recorded(store, team(last="Done!")))

    assert lines[0].startswith("where they diverge isn't known: of run A, what models were sent is not kept")
    assert [line.split() for line in lines if line.startswith("output")] == [
        ["output", "differs", "differs"],
        ["output:"],
    ]
    assert lines[-2:] == ["  -done", "  +Done!"]


def test_programs_get_the_differences_as_data() -> None:
    store = memory_store()
    one, other = recorded(store, team()), recorded(store, team(result=4))

    data = json.loads(done(compare_runs(store, one.run_id, other.run_id, as_json=True))[0])

    assert data["parting"]["differences"] == [{"part": "result", "name": "add", "values": [3, 4]}]
    assert data["same_output"] is True
    assert [each["usage"]["requests"] for each in data["runs"]] == [4, 4]


def test_the_two_latest_runs_are_compared_if_none_is_named() -> None:
    store = memory_store()
    with pytest.raises(UsageError, match="no other run"):
        done(compare_runs(store, None, None, as_json=False))
    recorded(store, team(last="1"))
    two = recorded(store, team(last="2"))
    three = recorded(store, team(last="3"))

    def ids(*named: str | None) -> list[str]:
        data = json.loads(done(compare_runs(store, *named, as_json=True))[0])
        return [each["run_id"] for each in data["runs"]]

    assert ids(None, None) == [two.run_id, three.run_id]
    assert ids(two.run_id, None) == [two.run_id, three.run_id]
    assert ids(three.run_id, None) == [three.run_id, two.run_id]


def test_a_run_that_is_not_there_is_an_error() -> None:
    store = memory_store()
    one = recorded(store, team())

    with pytest.raises(UsageError, match="no run has the id 'zz'"):
        done(compare_runs(store, one.run_id, "zz", as_json=False))

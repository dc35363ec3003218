"""Teams: the lead delegates, workers work by themselves."""

from __future__ import annotations

import asyncio
from typing import Any

from llm_do import AgentArgs, PromptInput, RunError, Runtime, Swarm
from tests.flows.flow_runs import finish, flow_project, flow_runtime, outline, run_flow, streamed, text_of
from tests.support.history import results_of, strict
from tests.support.runs import agent
from tests.support.scripted import call, script


class Order(AgentArgs):
    item: str
    pieces: int = 1


def give(name: str, task: Any, id: str) -> Any:
    return call(f"delegate_to_{name}", {"task": task}, id)


def test_the_lead_gets_a_tool_for_each_worker_and_its_answer_as_the_result() -> None:
    lead = agent("lead", script(give("w", "dig", "d1"), "all done"))
    flow = Swarm([lead, agent("w", script("dug"), description="Digs.")], mode="team", name="crew")

    result = run_flow(flow, approvals="reject_all")

    assert text_of(result) == "all done"
    assert results_of(result.messages) == [("d1", "success", "dug")]
    offered = lead.model.asked[0].info.function_tools[0]  # type: ignore[union-attr]
    assert (offered.name, offered.description) == ("delegate_to_w", "Give a task to w and get its result. Digs.")
    assert [record.path for record in result.calls] == ["crew/1/lead/w", "crew/1/lead"]
    assert result.calls[0].call_id.endswith(".1.lead.d1")


def test_the_lead_as_declared_has_no_such_tool() -> None:
    lead = agent("lead", script("alone"))
    flow = Swarm([lead, agent("w", script("dug"))], mode="team")

    finish(flow_runtime(flow, lead, entry="lead"))

    assert lead.model.asked[0].tools == []  # type: ignore[union-attr]


def test_workers_called_in_one_response_run_in_parallel() -> None:
    barrier = asyncio.Barrier(2)

    async def together(messages: Any, info: Any) -> str:
        await barrier.wait()
        return "done"

    lead = agent("lead", script([give("a", "x", "d1"), give("b", "y", "d2")], "all done"))
    result = run_flow(Swarm([lead, agent("a", script(together)), agent("b", script(together))], mode="team"))

    assert text_of(result) == "all done"
    strict(result.messages)


def test_a_worker_that_takes_fields_gets_fields() -> None:
    worker = agent("buyer", script("bought"), input_model=Order)
    lead = agent("lead", script(give("buyer", {"item": "lamp"}, "d1"), give("buyer", {"pieces": 1}, "d2"), "done"))

    result = run_flow(Swarm([lead, worker], mode="team"))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "failed"]
    assert "'item' is a required property" in results_of(result.messages)[1][2]
    assert worker.model.asked[0].prompt == '{"item":"lamp","pieces":1}'  # type: ignore[union-attr]


class Translation(PromptInput):
    language: str = "English"


def test_a_worker_that_takes_text_and_fields_gets_both() -> None:
    worker = agent("w", script("done"), input_model=Translation, template=True, instructions="{{language}}")
    lead = agent("lead", script(give("w", {"input": "Tee", "language": "German"}, "d1"), "done"))

    text_of(run_flow(Swarm([lead, worker], mode="team")))

    assert worker.model.asked[0].info.instructions == "German"  # type: ignore[union-attr]
    assert worker.model.asked[0].prompt == "Tee"  # type: ignore[union-attr]


def test_a_worker_that_fails_is_a_failed_result_with_its_path() -> None:
    async def broken(messages: Any, info: Any) -> str:
        raise RunError("no shovel")

    lead = agent("lead", script(give("w", "dig", "d1"), "without it then"))
    result = run_flow(Swarm([lead, agent("w", script(broken))], mode="team", name="crew"))

    assert text_of(result) == "without it then"
    assert "crew/1/lead/w failed: no shovel" in results_of(result.messages)[0][2]


def test_workers_may_be_flows_and_functions() -> None:
    def measure(text: str) -> int:
        return len(text)

    pair = Swarm([agent("a", script("a's")), agent("b", script("b's"))], name="pair")
    lead = agent("lead", script([give("pair", "x", "d1"), give("measure", "four", "d2")], "done"))

    result = run_flow(Swarm([lead, pair, measure], mode="team"))

    assert [text for _, _, text in results_of(result.messages)] == ["b's", "4"]


def test_a_lead_is_built_once_for_all_runs() -> None:
    lead = agent("lead", script("done"))
    flow = Swarm([lead, agent("w", script("dug"))], mode="team")
    project = flow_project(flow)
    runtime = Runtime(project)

    built = []
    for _ in range(3):
        finish(runtime)
        built.append(len(runtime.builder._built))

    assert built[0] == built[2]


WHOLE = """
run_started crew
call_started crew
call_started crew/1/lead
model_request crew/1/lead
usage crew/1/lead
tool_call crew/1/lead delegate_to_w
call_started crew/1/lead/w
model_request crew/1/lead/w
usage crew/1/lead/w
text_done crew/1/lead/w dug
call_finished crew/1/lead/w completed
tool_result crew/1/lead delegate_to_w success
model_request crew/1/lead
usage crew/1/lead
text_done crew/1/lead done
call_finished crew/1/lead completed
call_finished crew completed
run_finished crew completed
""".strip().splitlines()


def test_run_and_stream_emit_the_same_events() -> None:
    lead = agent("lead", script(give("w", "dig", "d1"), "done"))
    runtime = flow_runtime(Swarm([lead, agent("w", script("dug"))], mode="team", name="crew"))

    assert outline(runtime) == WHOLE
    assert streamed(runtime) == WHOLE

"""Flows combined with other features: approvals, denials, timeouts, cancellation, hooks, limits, nesting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, CallContext, HookPoint, RunApprovalPolicy, Swarm, tool
from llm_do.flows import ParallelGroup
from llm_do.runtime.record.events.event_base import EventBase
from tests.flows.flow_runs import finish, flow_runtime, outline, run_flow, streamed, text_of
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, heard
from tests.support.scripted import call, script


def send(text: str) -> str:
    """Send a text."""
    return f"sent {text}"


def gated(name: str, skips: int = 0) -> Any:
    """Create an agent that calls `send` and reports the result, after `skips` other answers."""

    def report(messages: Any, info: Any) -> str:
        return f"{name}: {messages[-1].parts[0].content}"

    return agent(name, script(*["others"] * skips, call("send", {"text": name}, f"{name}1"), report), tools=[send])


def test_a_step_waits_for_approval_while_its_sibling_keeps_running() -> None:
    """The sibling gives the answer, so it has to run while the request is pending."""

    async def main() -> None:
        asked: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        answer: asyncio.Future[ApprovalDecision] = asyncio.get_running_loop().create_future()

        async def person(request: ApprovalRequest) -> ApprovalDecision:
            await asked.put(request)
            return await answer

        async def sibling(input: str, ctx: CallContext) -> str:
            request = await asked.get()
            answer.set_result(ApprovalDecision("once"))
            return f"saw {request.agent_path}"

        runtime = flow_runtime(ParallelGroup("both", [gated("a"), sibling]), approvals=person)
        result = await asyncio.wait_for(runtime.run("go"), 30)
        assert result.output == "a: sent a\n\nsaw both/1/a"

    asyncio.run(main())


def test_approval_requests_of_parallel_members_are_shown_one_at_a_time() -> None:
    answers = Answers(["once", "deny", "once"])

    result = run_flow(ParallelGroup("all", [gated("a"), gated("b"), gated("c")]), approvals=answers)

    assert [request.agent_path for request in answers.asked] == ["all/1/a", "all/1/b", "all/1/c"]
    outputs = text_of(result).split("\n\n")
    assert (outputs[0], outputs[2]) == ("a: sent a", "c: sent c")
    assert "denied" in outputs[1]
    assert [record.agent_path for record in result.denials] == ["all/1/b"]


@pytest.mark.parametrize("on_error", ["cancel", "collect"])
def test_a_denial_that_ends_the_run_ends_it_even_with_collect(on_error: Any) -> None:
    ended: list[str] = []

    async def waits(input: str, ctx: CallContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")
        return ""

    policy = RunApprovalPolicy("reject_all", return_permission_errors=False)
    result = run_flow(ParallelGroup("all", [gated("a"), waits], on_error=on_error), approvals=policy)

    assert type(result.error).__name__ == "PermissionDeniedError"
    assert ended == ["waits"]


@pytest.mark.parametrize("on_error", ["cancel", "collect"])
def test_a_person_who_aborts_ends_the_run(on_error: Any) -> None:
    answers = Answers(["abort"])

    result = run_flow(ParallelGroup("all", [gated("a"), gated("b")], on_error=on_error), approvals=answers)

    assert type(result.error).__name__ == "AbortedError"


@pytest.mark.parametrize("on_error", ["cancel", "collect"])
def test_a_tool_timeout_only_affects_its_own_member(on_error: Any) -> None:
    @tool(approval="allow", timeout=0.01)
    async def stuck() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    slow = agent("slow", script(call("stuck", {}, "s1"), "gave up"), tools=[stuck])

    result = run_flow(ParallelGroup("all", [slow, gated("b")], on_error=on_error))

    assert text_of(result) == "gave up\n\nb: sent b"
    assert results_of(result.messages)[0][1] == "failed"


def test_a_run_that_takes_too_long_ends_all_members() -> None:
    begun: list[str] = []
    ended: list[str] = []

    def member(name: str) -> Any:
        async def step(input: str, ctx: CallContext) -> str:
            begun.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)
            return ""

        step.__name__ = name
        return step

    result = run_flow(ParallelGroup("all", [member("a"), member("b")], on_error="collect"), run_timeout=0.5)

    assert (result.status, type(result.error).__name__) == ("limited", "RunTimeoutError")
    assert sorted(ended) == sorted(begun)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "point", [HookPoint.START, HookPoint.PRE_LLM_CALL, HookPoint.PRE_TOOL_CALL, HookPoint.FINISHED]
)
@pytest.mark.parametrize("on_error", ["cancel", "collect"])
def test_a_hook_of_one_member_aborts_the_whole_run_with_its_own_exception(point: HookPoint, on_error: Any) -> None:
    class StopError(Exception):
        pass

    def stop(**data: Any) -> None:
        raise StopError("now")

    a = gated("a")
    a.hooks = [(point, stop)]
    runtime = flow_runtime(ParallelGroup("all", [gated("b"), a], on_error=on_error))

    result = finish(runtime)
    assert type(result.error) is StopError
    with pytest.raises(StopError, match="now"):
        streamed(runtime)
    with pytest.raises(StopError, match="now"):
        runtime.run_sync("go")


HOOKS = """
start a
pre_llm_call a
post_llm_call a
pre_tool_call a send {'text': 'a'}
post_tool_call a send sent a
pre_llm_call a
post_llm_call a
finished a
start b
pre_llm_call b
post_llm_call b
error b
""".strip().splitlines()


@pytest.mark.parametrize("way", ["run", "run_sync", "stream"])
def test_hooks_are_called_once_per_occurrence_in_declared_order_in_every_way_to_run(way: str) -> None:
    seen: list[str] = []

    def on(point: HookPoint, mark: str) -> Any:
        async def hook(agent: Any, **data: Any) -> None:
            known = {name: value for name, value in data.items() if name in ("tool_name", "arguments", "result")}
            line = " ".join([point.value, agent.name, *map(str, known.values())])
            if mark == "first":
                seen.append(line)
            else:
                assert seen[-1] == line
            assert set(data) == {
                HookPoint.ERROR: {"error"},
                HookPoint.PRE_LLM_CALL: {"messages"},
                HookPoint.POST_LLM_CALL: {"response"},
                HookPoint.PRE_TOOL_CALL: {"tool_name", "arguments"},
                HookPoint.POST_TOOL_CALL: {"tool_name", "result"},
            }.get(point, set())

        return point, hook

    hooks = [on(point, "first") for point in HookPoint]
    a = gated("a")
    b = agent("b", script([call("send", {}, "b1"), call("send", {}, "b2")], ""), tools=[send], max_steps=1)
    a.hooks = b.hooks = [on(point, "second") for point in HookPoint]
    b.max_steps = 1
    runtime = flow_runtime(Swarm([a, b]), hooks=hooks)

    if way == "run":
        assert finish(runtime).status == "limited"
    elif way == "run_sync":
        with pytest.raises(Exception, match="its only model request"):
            runtime.run_sync("go")
    else:
        with pytest.raises(Exception, match="its only model request"):
            streamed(runtime)

    assert seen == HOOKS


def newsroom() -> Swarm:
    """Create a workflow that contains a team whose worker is a handoff flow with a gated agent."""
    clerk = agent("clerk", script(call("transfer_to_printer", {"reason": "print"}, "h1")), handoffs=["printer"])
    press = Swarm([clerk, gated("printer", skips=1)], mode="handoff", name="press")
    editor = agent("editor", script(call("delegate_to_press", {"task": "print it"}, "d1"), "edited"))
    desk = Swarm([editor, press], mode="team", name="desk")
    return Swarm([agent("writer", script("text")), desk, agent("reader", script("read"))], name="paper")


WHOLE = """
run_started paper
call_started paper
call_started paper/1/writer
model_request paper/1/writer
usage paper/1/writer
text_done paper/1/writer text
call_finished paper/1/writer completed
call_started paper/2/desk
call_started paper/2/desk/1/editor
model_request paper/2/desk/1/editor
usage paper/2/desk/1/editor
tool_call paper/2/desk/1/editor delegate_to_press
call_started paper/2/desk/1/editor/press
call_started paper/2/desk/1/editor/press/1/clerk
model_request paper/2/desk/1/editor/press/1/clerk
usage paper/2/desk/1/editor/press/1/clerk
tool_call paper/2/desk/1/editor/press/1/clerk transfer_to_printer
tool_result paper/2/desk/1/editor/press/1/clerk transfer_to_printer success
handoff paper/2/desk/1/editor/press/1/clerk
call_finished paper/2/desk/1/editor/press/1/clerk completed
call_started paper/2/desk/1/editor/press/2/printer
model_request paper/2/desk/1/editor/press/2/printer
usage paper/2/desk/1/editor/press/2/printer
tool_call paper/2/desk/1/editor/press/2/printer send
approval_requested paper/2/desk/1/editor/press/2/printer send
approval_resolved paper/2/desk/1/editor/press/2/printer send allow
tool_result paper/2/desk/1/editor/press/2/printer send success
model_request paper/2/desk/1/editor/press/2/printer
usage paper/2/desk/1/editor/press/2/printer
text_done paper/2/desk/1/editor/press/2/printer printer: sent printer
call_finished paper/2/desk/1/editor/press/2/printer completed
call_finished paper/2/desk/1/editor/press completed
tool_result paper/2/desk/1/editor delegate_to_press success
model_request paper/2/desk/1/editor
usage paper/2/desk/1/editor
text_done paper/2/desk/1/editor edited
call_finished paper/2/desk/1/editor completed
call_finished paper/2/desk completed
call_started paper/3/reader
model_request paper/3/reader
usage paper/3/reader
text_done paper/3/reader read
call_finished paper/3/reader completed
call_finished paper completed
run_finished paper completed
""".strip().splitlines()


def test_nested_flows_emit_the_same_events_in_order_in_run_and_in_stream() -> None:
    runtime = flow_runtime(newsroom(), approvals=Answers(["once"]))

    assert outline(runtime) == WHOLE
    assert streamed(runtime) == WHOLE


def test_every_event_of_a_nested_flow_names_its_caller() -> None:
    runtime = flow_runtime(newsroom(), approvals=Answers(["once"]))
    ear = heard(runtime)
    result = finish(runtime)

    paths = {event.call_id: event.path for event in ear.events}
    parents = {event.path: paths.get(event.parent_call_id) for event in ear.events if isinstance(event, EventBase)}
    assert parents["paper"] is None
    assert parents["paper/2/desk/1/editor"] == "paper/2/desk"
    assert parents["paper/2/desk/1/editor/press"] == "paper/2/desk/1/editor"
    assert parents["paper/2/desk/1/editor/press/2/printer"] == "paper/2/desk/1/editor/press"
    strict(result.messages)
    assert result.steps == len(ear.of("usage"))


def test_depth_is_counted_through_flows_teams_and_handovers() -> None:
    result = finish(flow_runtime(newsroom(), approvals=Answers(["once"]), max_depth=3))

    assert text_of(result) == "read"
    assert [error.type for error in result.errors] == ["DepthLimitError"]
    refused = [error.agent_path for error in result.errors]
    assert refused == ["paper/2/desk/1/editor/press/1/clerk"]


def test_a_flow_called_recursively_by_its_agent_ends_at_the_depth_limit() -> None:
    again = agent("again", script(call("loop", {"input": "more"}, "c1"), "enough"), toolsets=["loop"])

    result = run_flow(Swarm([again], name="loop"))

    assert text_of(result) == "enough"
    assert [error.type for error in result.errors] == ["DepthLimitError"]


def test_the_descendants_budget_counts_steps_of_flows() -> None:
    result = run_flow(Swarm([agent(name, script(name)) for name in "abc"]), budget={"descendants": 2})

    assert (result.status, [record.path for record in result.calls]) == ("limited", ["swarm/1/a", "swarm/2/b"])

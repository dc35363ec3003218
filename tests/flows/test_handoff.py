"""Handoffs: which agent answers, what it sees, and when a chain ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.messages import UserPromptPart

from llm_do import AgentSpec, CallContext, HandoffLimitError, HookPoint, LinkError, Runtime, Swarm, Toolkit, run
from llm_do.flows import SwarmNode
from llm_do.threads import memory_store
from tests.flows.flow_runs import Report, finish, flow_project, flow_runtime, outline, run_flow, streamed, text_of
from tests.support.history import results_of, strict
from tests.support.runs import agent, heard, runtime_of as agents_runtime
from tests.support.scripted import call, script


def to(name: str, reason: str = "it's theirs", id: str = "h1") -> Any:
    return call(f"transfer_to_{name}", {"reason": reason}, id)


def desk(*triage: Any, billing: Any = ("paid",), **fields: Any) -> Swarm:
    """Create agents: triage hands over to billing or sales, billing back to triage."""
    return Swarm(
        [
            agent("triage", script(*triage), handoffs=["billing", "sales"], instructions="You sort."),
            agent("billing", script(*billing), handoffs=["triage"], instructions="You bill.", description="Bills."),
            agent("sales", script("sold")),
        ],
        mode="handoff",
        name="desk",
        **fields,
    )


def model_of(flow: Swarm, name: str) -> Any:
    return flow.members[name].model


def test_an_agent_that_answers_keeps_control() -> None:
    result = run_flow(desk("hello"))

    assert text_of(result) == "hello"
    assert [record.path for record in result.calls] == ["desk/1/triage"]
    assert result.execution_context.active_agent == "triage"


def test_the_next_agent_sees_the_request_and_the_conversation_and_answers() -> None:
    flow = desk(to("billing"))

    result = run_flow(flow, "My bill is wrong")

    assert text_of(result) == "paid"
    seen = model_of(flow, "billing").asked[0]
    prompts = [part.content for message in seen.messages for part in message.parts if isinstance(part, UserPromptPart)]
    assert prompts == ["My bill is wrong"]
    assert results_of(seen.messages) == [("h1", "success", "Control goes to billing.")]
    assert seen.info.instructions == "You bill."
    assert seen.tools == ["transfer_to_triage"]
    assert result.execution_context.active_agent == "billing"
    strict(result.messages)
    assert [message.kind for message in result.messages] == ["request", "response", "request", "response"]


def test_the_handoff_tool_describes_its_target_and_needs_no_approval() -> None:
    flow = desk(to("billing"))

    result = run_flow(flow, approvals="reject_all")

    offered = model_of(flow, "triage").asked[0].info.function_tools
    assert [tool.name for tool in offered] == ["transfer_to_billing", "transfer_to_sales"]
    assert offered[0].description == "Hand the conversation over to billing. Bills."
    assert text_of(result) == "paid"
    assert not result.denials


def test_the_last_agent_to_answer_continues_in_the_next_turn() -> None:
    flow = desk(to("billing"), billing=["paid"])
    runtime = flow_runtime(flow)

    first = finish(runtime, "My bill is wrong")
    second = finish(runtime, "And the next one?", execution_context=first.execution_context)
    anew = finish(runtime, "A new customer")

    assert [record.path for record in second.calls] == ["desk/1/billing"]
    assert len(model_of(flow, "triage").asked) == 2
    assert len(second.messages) == len(first.messages) + 2
    strict(second.messages)
    assert [record.path for record in anew.calls] == ["desk/1/triage", "desk/2/billing"]


def test_an_answer_that_is_exactly_a_targets_name_hands_over_too() -> None:
    flow = desk(" billing\n")

    result = run_flow(flow, "My bill is wrong")

    assert text_of(result) == "paid"
    assert [message.kind for message in result.messages] == ["request", "response"]
    assert run_flow(desk("billing, I think")).output == "billing, I think"
    assert run_flow(desk("desk")).output == "desk"


def test_other_calls_of_the_same_response_run_first() -> None:
    done: list[str] = []

    async def note(text: str) -> str:
        """Take a note."""
        for _ in range(5):
            await asyncio.sleep(0)
        done.append(text)
        return "saved"

    def arrived(messages: Any, info: Any) -> str:
        done.append("billing")
        return "paid"

    triage = agent(
        "triage", script([to("billing"), call("note", {"text": "x"}, "n1")]), tools=[note], handoffs=["billing"]
    )
    result = run_flow(Swarm([triage, agent("billing", script(arrived))], mode="handoff"))

    assert done == ["x", "billing"]
    assert results_of(result.messages) == [("h1", "success", "Control goes to billing."), ("n1", "success", "saved")]
    strict(result.messages)


def test_the_first_of_two_handoffs_in_one_response_wins() -> None:
    result = run_flow(desk([to("sales", id="h1"), to("billing", id="h2")]))

    assert text_of(result) == "sold"
    assert [(id, outcome) for id, outcome, _ in results_of(result.messages)] == [("h1", "success"), ("h2", "failed")]


def test_endless_handoffs_are_stopped() -> None:
    result = run_flow(desk(to("billing"), billing=[to("triage")], max_handoffs=3))

    assert (result.status, type(result.error)) == ("limited", HandoffLimitError)
    assert "triage -> billing -> triage -> billing -> triage" in str(result.error)
    assert result.steps == 4
    strict(result.messages)


def test_max_handoffs_are_allowed_and_one_more_is_not() -> None:
    turns = iter([to("triage"), "paid"])
    flow = desk(to("billing"), billing=[lambda messages, info: next(turns)], max_handoffs=3)

    assert text_of(run_flow(flow)) == "paid"


def test_an_agent_with_handoffs_hands_over_wherever_it_is_called() -> None:
    flow = desk(to("billing"))
    triage = flow.members["triage"]
    specs = [triage, flow.members["billing"], flow.members["sales"]]

    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("triage", "My bill is wrong")

    boss = agent("boss", script(call("triage", {"input": "help"}, "c1"), "done"), toolsets=["triage"])
    by_code = finish(agents_runtime(specs, main))
    by_model = finish(agents_runtime([boss, *specs]))
    as_entry = finish(agents_runtime(specs, "triage"))
    again = finish(agents_runtime(specs, "triage"), "more", execution_context=as_entry.execution_context)

    assert text_of(by_code) == "paid"
    assert results_of(by_model.messages)[0][2] == "paid"
    assert [record.path for record in by_model.calls] == ["boss/triage", "boss/billing"]
    assert (as_entry.output, as_entry.execution_context.active_agent) == ("paid", "billing")
    assert [message.kind for message in as_entry.messages] == ["request", "response"] * 2
    assert again.output == "paid"
    assert again.calls == []
    strict(again.messages)


def test_hooks_see_each_agent_start_and_end_once() -> None:
    seen: list[str] = []

    def on(point: HookPoint) -> Any:
        return point, lambda agent, **data: seen.append(f"{point.value} {agent.name}")

    flow = desk(to("billing"))
    for name in ("triage", "billing"):
        flow.members[name].hooks = [on(point) for point in HookPoint]

    text_of(run_flow(flow))

    assert seen == [
        "start triage",
        "pre_llm_call triage",
        "post_llm_call triage",
        "pre_tool_call triage",
        "post_tool_call triage",
        "finished triage",
        "start billing",
        "pre_llm_call billing",
        "post_llm_call billing",
        "finished billing",
    ]


WHOLE = """
run_started desk
call_started desk
call_started desk/1/triage
model_request desk/1/triage
usage desk/1/triage
tool_call desk/1/triage transfer_to_billing
tool_result desk/1/triage transfer_to_billing success
handoff desk/1/triage
call_finished desk/1/triage completed
call_started desk/2/billing
model_request desk/2/billing
usage desk/2/billing
text_done desk/2/billing paid
call_finished desk/2/billing completed
call_finished desk completed
run_finished desk completed
""".strip().splitlines()


def test_run_and_stream_emit_the_same_events() -> None:
    runtime = flow_runtime(desk(to("billing")))
    log = heard(runtime, "handoff")

    assert outline(runtime) == WHOLE
    assert streamed(runtime) == WHOLE
    data = log.events[0].to_dict()
    assert (data["from"], data["to"], data["reason"]) == ("triage", "billing", "it's theirs")


def test_a_target_outside_the_flow_is_refused_on_creation() -> None:
    with pytest.raises(LinkError, match="hands over to `sales`, which is not in the flow"):
        Swarm([AgentSpec("triage", handoffs=["sales"])], mode="handoff")


def test_run_takes_a_swarm_and_continues_its_conversation() -> None:
    flow = desk(to("billing"))

    first = run.sync(flow, "one")
    second = run.sync(flow, "two", execution_context=first.execution_context)

    assert (first.output, second.output) == ("paid", "paid")
    assert len(model_of(flow, "triage").asked) == 1


def test_a_typed_request_stays_typed_for_a_target_with_the_same_type() -> None:
    first = agent("first", script(to("second")), input_model=Report, handoffs=["second"])
    second = agent("second", script("seen"), input_model=Report, template=True, instructions="About {{title}}.")

    result = run_flow(Swarm([first, second], mode="handoff"), {"title": "Tea", "points": []})

    assert text_of(result) == "seen"
    assert second.model.asked[0].info.instructions == "About Tea."  # type: ignore[union-attr]


def test_an_agent_of_that_name_registered_late_is_found() -> None:
    triage = agent("triage", script(to("late")), handoffs=["late"])
    runtime = Runtime(agents_runtime([triage]).project)
    runtime.register_agents({"late": agent("late", script("here"))})

    assert text_of(finish(runtime)) == "here"


def test_an_unknown_target_is_named() -> None:
    result = finish(agents_runtime([agent("triage", script(to("unknown")), handoffs=["unknown"])]))

    assert result.status == "failed"
    assert "'triage' hands over to 'unknown', which isn't an agent" in str(result.error)
    strict(result.messages)


def session() -> Toolkit:
    kit = Toolkit("session")
    kit.tool(enables_states=["in"], approval="allow")(login)
    kit.tool(required_states=["in"], approval="allow")(profile)
    return kit


def login() -> str:
    """Log in."""
    return "welcome"


def profile() -> str:
    """Show the profile."""
    return "ann's profile"


@pytest.mark.parametrize("mode", ["handoff", "team"])
def test_a_login_lasts_into_the_next_turn_of_a_conversational_flow(mode: Any) -> None:
    turns = iter([call("login"), "in", call("profile"), "seen"])
    clerk = agent("clerk", script(lambda messages, info: next(turns)), toolsets=[session()])
    runtime = flow_runtime(Swarm([clerk], mode=mode))

    first = finish(runtime, "log in")
    second = finish(runtime, "who am I?", execution_context=first.execution_context)

    assert first.toolkits["session"].unlocked_states == {"in"}
    assert text_of(second) == "seen"
    assert results_of(second.messages)[-1][1:] == ("success", "ann's profile")


def test_a_login_in_a_handoff_flow_survives_a_restart_with_its_thread() -> None:
    store = memory_store()

    def once(*turns: Any) -> Any:
        clerk = agent("clerk", script(*turns), toolsets=[session()])
        project = flow_project(Swarm([clerk], mode="handoff", name="desk"))
        return finish(Runtime(project, store=store), "go", thread_id="t")

    once(call("login"), "in")
    assert results_of(once(call("profile"), "seen").messages)[-1][1:] == ("success", "ann's profile")


def test_a_nested_handoff_flow_starts_with_its_own_states() -> None:
    clerk = agent("clerk", script(call("login"), "in"), toolsets=[session()])
    inner = Swarm([clerk], mode="handoff", name="inner")

    result = run_flow(Swarm([inner, SwarmNode(inner, "again")]))

    assert text_of(result) == "in"
    assert result.toolkits == {}

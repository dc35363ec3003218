"""`ApprovalRequired` raised by a tool: its reason, the tool's earlier effects, and the scope of the approval."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext

from llm_do import ApprovalDecision, CallContext, HookPoint, Runtime, run
from llm_do.project.agent_spec import ToolsetRef
from tests.runtime.approval.required import SEEN, careful, kit, late, letters, policy, send, sender, to_the_boss
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    SEEN.clear()


def test_the_tools_reason_is_shown_and_no_rule_is_named() -> None:
    person = Answers(["once"])
    runtime = runtime_of([sender(name="careful", **late())], approvals=person, policy=policy())
    ear = heard(runtime, "approval_requested")
    carry_out(runtime)

    [asked], [event] = person.asked, ear.events
    assert asked.reason == event.reason == "careful needs approval: it goes to the boss"
    assert (asked.rule, event.rule) == (None, None)


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        (None, "the tool requires it for these arguments"),
        ({"cost": 3}, '{"cost":3}'),
        ({"reason": 7}, '{"reason":7}'),
        ({"reason": "x" * 5000}, "x..."),
        ({"odd": object()}, "object"),
    ],
)
def test_any_metadata_becomes_a_reason(metadata: Any, shown: str) -> None:
    def odd(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata)
        return "done"

    person = Answers(["once"])
    spec = agent("main", script([call("odd")], "fin"), tools=[odd])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert results_of(result.messages)[0][2] == "done"
    assert shown in person.asked[0].reason
    assert len(person.asked[0].reason) < 1200


def test_hooks_fire_once_and_the_post_hook_not_for_a_denial() -> None:
    fired: list[str] = []
    hooks = [
        (HookPoint.PRE_TOOL_CALL, lambda **data: fired.append(f"pre {data['tool_name']}")),
        (HookPoint.POST_TOOL_CALL, lambda **data: fired.append(f"post {data['result']}")),
    ]
    for answer in ("once", "deny"):
        spec = sender(name="careful", **late(), hooks=hooks)
        carry_out(runtime_of([spec], approvals=Answers([answer]), policy=policy()))

    assert fired == ["pre careful", "post sent to boss", "pre careful"]


def test_a_tool_that_asks_again_after_its_approval_fails() -> None:
    def never() -> str:
        """Never satisfied."""
        raise ApprovalRequired

    person = Answers(["once"])
    spec = agent("main", script([call("never")], "fin"), tools=[never])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    [(_, outcome, text)] = results_of(result.messages)
    assert (outcome, len(person.asked)) == ("failed", 1)
    assert "ctx.tool_call_approved" in text


def test_a_call_from_python_is_trusted() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("careful", {"to": "boss"})

    result = carry_out(Runtime(project_of([], main, tools={"careful": careful})))

    assert (result.output, SEEN) == ("sent to boss", [("boss", True)])


def test_approving_a_call_does_not_approve_the_calls_it_makes() -> None:
    inner = agent("inner", script([call("send", to="ann")], "inner done"), tools=[send])
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])
    carry_out(runtime_of([main, inner], approvals="reject_all", policy=policy(allow=["inner"])))

    assert SEEN == [("ann", False)]


def test_parallel_calls_each_need_approval() -> None:
    person = Answers(["once", "deny", "once"])
    calls = [call("send", to="boss"), call("careful", to="boss"), call("send", to="ann")]
    kit = letters().approval_required(to_the_boss)
    spec = agent("main", script(calls, "fin"), tools=[careful], toolsets=[kit])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert len(person.asked) == 2
    outcomes = [outcome for _, outcome, _ in results_of(result.messages)]
    assert sorted(outcomes) == ["denied", "success", "success"]
    assert ("ann", False) in SEEN


@pytest.mark.parametrize(("answer", "sent"), [("once", ["boss"]), ("deny", [])])
def test_a_toolkits_changes_before_the_tool_raised_are_discarded(answer: str, sent: list[str]) -> None:
    spec = sender(name="kit_careful", toolsets=[ToolsetRef("kit", prefix="kit", value=kit())])
    runtime = runtime_of([spec], approvals=Answers([answer]), policy=policy())
    ear = heard(runtime, "state_changed")
    carry_out(runtime)

    assert [event.updates for event in ear.events] == ([{"sent": sent}] if sent else [])


def test_tools_of_a_pydantic_ai_agent_need_approval_in_the_same_way() -> None:
    model = script([call("send", to="boss"), call("careful", to="boss")], "fin")
    own: Agent[Any, str] = Agent(model, tools=[careful], toolsets=[letters().approval_required(to_the_boss)])
    person = Answers(["once"])
    result = run.sync(own, "x", approvals=person)

    assert result.output == "fin"
    assert SEEN == [("boss", True)] * 2
    assert len(person.asked) == 2
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "success"]


def test_a_cancelled_run_withdraws_its_question() -> None:
    class Waiting:
        def __init__(self) -> None:
            self.reached = asyncio.Event()

        async def __call__(self, request: Any) -> ApprovalDecision:
            self.reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> list[str]:
        person = Waiting()
        runtime = runtime_of([sender(name="careful", **late())], approvals=person, policy=policy())
        ear = heard(runtime)
        running = asyncio.ensure_future(runtime.execute("go"))
        await person.reached.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await runtime.aclose()
        return ear.types

    types = asyncio.run(main())
    assert SEEN == []
    assert [type for type in types if "tool" in type or "approval" in type] == [
        "tool_call",
        "approval_requested",
        "approval_resolved",
        "tool_result",
    ]

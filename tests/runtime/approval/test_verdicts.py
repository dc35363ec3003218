"""Decisions by the policy function, tools, toolsets and agent defaults, next to rules and a person."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset

from llm_do import tool
from llm_do.flows import FlowSpec
from llm_do.project.project import Overrides
from llm_do.toolsets.approval import set_toolset_approval_config
from tests.flows.flow_runs import flow_runtime
from tests.runtime.approval.letters import RAN, send, sender
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


# -- the policy function


def decide_with(function: Callable[..., Any], approvals: Any = "reject_all") -> Any:
    return carry_out(runtime_of([sender()], approvals=approvals, policy_function=function))


def test_a_policy_function_approves_rejects_asks_or_abstains() -> None:
    seen: list[Any] = []

    def approving(info: Any) -> str:
        seen.append(info)
        return "approve"

    decide_with(approving)
    assert RAN == ["ann"]
    assert (seen[0].tool_name, dict(seen[0].args), seen[0].agent, seen[0].path, seen[0].depth) == (
        "send",
        {"to": "ann"},
        "main",
        "main",
        1,
    )

    assert decide_with(lambda info: "reject", "approve_all").denials[0].tool == "send"
    person = Answers(["once"])
    decide_with(lambda info: "prompt", person)
    assert len(person.asked) == 1
    decide_with(lambda info: None, "approve_all")
    assert RAN == ["ann"] * 3


def test_an_async_policy_function_works_too() -> None:
    async def approving(info: Any) -> str:
        await asyncio.sleep(0)
        return "approve"

    decide_with(approving)
    assert RAN == ["ann"]


async def _hangs(info: Any) -> str:
    await asyncio.Event().wait()
    return "approve"


async def _gives_up(info: Any) -> str:
    raise asyncio.CancelledError


def _raises(info: Any) -> str:
    raise RuntimeError("policy")


@pytest.mark.parametrize(
    "function",
    [_raises, _gives_up, _hangs, lambda info: "yes", lambda info: True, lambda info: ["approve"], lambda: "approve"],
)
def test_a_policy_function_that_fails_rejects(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.runtime.approval.approver.POLICY_SECONDS", 0.02)
    runtime = runtime_of([sender()], approvals="approve_all", policy_function=function)
    ear = heard(runtime, "warning")
    result = carry_out(runtime)

    assert RAN == []
    assert result.output == "fin"
    assert result.denials[0].tool == "send"
    assert "send" in ear.events[0].message


def test_a_policy_function_cannot_change_the_arguments_of_its_call() -> None:
    seen: list[str] = []

    def changing(info: Any) -> str:
        seen.append(info.args["to"])
        with suppress(TypeError):
            info.args["to"] = "eve"
        return "approve"

    decide_with(changing)
    assert RAN == seen == ["ann"]


# -- the decisions of tools and toolsets


def test_a_tools_own_decision_is_honoured() -> None:
    @tool(approval="allow")
    def read() -> str:
        RAN.append("read")
        return "r"

    @tool(approval="deny")
    def burn() -> str:
        RAN.append("burn")
        return "b"

    spec = agent("main", script([call("read"), call("burn")], "fin"), tools=[read, burn])
    result = carry_out(runtime_of([spec], approvals="reject_all"))
    assert RAN == ["read"]
    result = carry_out(runtime_of([spec], approvals="approve_all"))
    assert RAN == ["read", "read"]
    assert [record.tool for record in result.denials] == ["burn"]


@pytest.mark.parametrize("as_tool", [True, False], ids=["tool", "toolset"])
def test_a_pydantic_ai_tool_that_requires_approval_prompts_inline(as_tool: bool) -> None:
    made = PydanticTool(send, requires_approval=True)
    fields: Any = {"tools": [made]} if as_tool else {"toolsets": [FunctionToolset([made])]}
    person = Answers(["once", "deny"])
    spec = agent("main", script([call("send", to="ann"), call("send", to="bob")], "fin"), **fields)
    result = carry_out(runtime_of([spec], approvals=person))

    assert (RAN, result.output) == (["ann"], "fin")
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied"]
    assert made.requires_approval


@pytest.mark.parametrize("declared", ["allow", "ask", "deny"])
@pytest.mark.parametrize("as_tool", [True, False], ids=["tool", "toolset"])
def test_metadata_feeds_the_policy(declared: str, as_tool: bool) -> None:
    made = PydanticTool(send, metadata={"approval": declared})
    fields: Any = {"tools": [made]} if as_tool else {"toolsets": [FunctionToolset([made])]}
    person = Answers(["once"])
    carry_out(runtime_of([agent("main", script([call("send", to="ann")], "fin"), **fields)], approvals=person))

    assert ([] if declared == "deny" else ["ann"]) == RAN
    assert len(person.asked) == (1 if declared == "ask" else 0)


class Judging(FunctionToolset[Any]):
    """A toolset with an decide_with on arguments, a sentence and a diff."""

    def needs_approval(self, name: str, args: dict[str, Any]) -> Any:
        to = args["to"]
        if to == "broken":
            raise RuntimeError("can't judge")
        return {"friend": False, "stranger": True, "enemy": "deny"}[to]

    def get_approval_description(self, name: str, args: dict[str, Any]) -> str:
        return f"Send a letter to {args['to']}"

    def diff(self, name: str, args: dict[str, Any]) -> str:
        raise RuntimeError("no diff")


def test_a_toolsets_decision_on_arguments_is_honoured_and_fails_closed() -> None:
    person = Answers(["once"])
    calls = [call("send", to=to) for to in ("friend", "stranger", "enemy", "broken")]
    spec = agent("main", script(calls, "fin"), toolsets=[Judging([send])])
    result = carry_out(runtime_of([spec], approvals=person))

    assert sorted(RAN) == ["friend", "stranger"]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "success", "denied", "denied"]
    [request] = person.asked
    assert request.description == "Send a letter to stranger"
    assert "no diff" in str(request.diff)


def test_approve_all_does_not_override_a_toolsets_block() -> None:
    spec = agent("main", script([call("send", to="enemy")], "fin"), toolsets=[Judging([send])])
    carry_out(runtime_of([spec], approvals="approve_all"))

    assert RAN == []


def test_tools_of_a_toolset_can_be_pre_approved() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([send])
    set_toolset_approval_config(toolset, {"send": {"pre_approved": True}})
    carry_out(
        runtime_of([agent("main", script([call("send", to="ann")], "fin"), toolsets=[toolset])], approvals="reject_all")
    )

    assert RAN == ["ann"]


def test_a_prefix_changes_the_name_in_the_question_and_not_the_decision() -> None:
    from llm_do.project.agent_spec import ToolsetRef

    person = Answers(["once"])
    spec = agent(
        "main",
        script([call("post_send", to="stranger"), call("post_send", to="friend")], "fin"),
        toolsets=[ToolsetRef("letters", prefix="post")],
    )
    carry_out(runtime_of([spec], toolsets={"letters": Judging([send])}, approvals=person))

    assert [request.tool_name for request in person.asked] == ["post_send"]
    assert sorted(RAN) == ["friend", "stranger"]


# -- agents as tools


def test_calling_an_agent_is_allowed_unless_the_project_asks() -> None:
    inner = agent("inner", script("in"))
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])
    assert carry_out(runtime_of([main, inner], approvals="reject_all")).calls[0].status == "completed"

    person = Answers(["once"])
    carry_out(runtime_of([main, inner], approvals=person, agent_calls_require_approval=True))
    assert [request.tool_name for request in person.asked] == ["inner"]


def test_approval_can_be_required_for_attachments_to_an_agent_alone() -> None:
    inner = agent("inner", script("in"))
    calls = [call("inner", input="x"), call("inner", input="y", attachments=["missing.txt"])]
    main = agent("main", script(calls, "fin"), toolsets=[inner])
    person = Answers(["deny"])
    result = carry_out(runtime_of([main, inner], approvals=person, agent_attachments_require_approval=True))

    assert [request.args["attachments"] for request in person.asked] == [["missing.txt"]]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied"]


def test_calls_from_python_need_no_approval_but_the_models_do() -> None:
    async def main(input: Any, ctx: Any) -> Any:
        return [await ctx.call("send", {"to": "python"}), await ctx.call("inner", "x")]

    inner = agent("inner", script([call("send", to="model")], "in"), tools=[send])
    result = carry_out(runtime_of([inner], main, tools={"send": send}, approvals="reject_all"))

    assert RAN == ["python"]
    assert result.output == ["sent to python", "in"]
    assert [record.agent_path for record in result.denials] == ["main/inner"]


@pytest.mark.parametrize("setting", ["agent_calls_require_approval", "agent_approval_overrides"])
def test_a_project_that_requires_approval_for_agents_requires_it_for_flows_and_handovers_too(setting: str) -> None:
    names = ("inner", "line", "next")
    given: Any = {name: Overrides(calls_require_approval=True) for name in names} if "overrides" in setting else True
    inner, after = agent("inner", script("in")), agent("next", script("out"))
    line = FlowSpec("line", agents=("inner",))
    calls = [call("inner", input="x"), call("line", input="y"), call("transfer_to_next", reason="z")]
    main = agent("main", script(calls, "fin"), toolsets=["inner", "line"], handoffs=["next"])
    person = Answers(["deny"])
    carry_out(flow_runtime(line, main, inner, after, entry="main", approvals=person, **{setting: given}))

    assert [request.tool_name for request in person.asked] == ["inner", "line", "transfer_to_next"]


# -- toolsets that panic


class Panic(BaseException):
    """A BaseException, as native extensions raise when they panic."""


@each_row("error", [Panic("broken"), SystemExit(3), asyncio.CancelledError(), ValueError("no")])
def test_a_toolset_that_panics_in_needs_approval_denies_and_does_not_end_the_run(error: BaseException) -> None:
    class Breaking(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> bool:
            raise error

    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[Breaking([send])])
    result = carry_out(runtime_of([spec]))

    assert (RAN, result.output) == ([], "fin")
    assert "failed to judge the call" in result.denials[0].reason


@pytest.mark.parametrize("error", [Panic("broken"), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_a_toolset_that_panics_in_its_description_still_prompts(error: BaseException) -> None:
    class Breaking(FunctionToolset[Any]):
        def get_approval_description(self, name: str, args: dict[str, Any]) -> str:
            raise error

    person = Answers(["once"])
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[Breaking([send])])
    result = carry_out(runtime_of([spec], approvals=person))

    assert (RAN, result.output) == (["ann"], "fin")
    assert type(error).__name__ in person.asked[0].description


def test_a_toolset_whose_description_hangs_prompts_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.runtime.approval.pending_call.DESCRIBE_SECONDS", 0.02)
    over = threading.Event()

    class Silent(FunctionToolset[Any]):
        def get_approval_description(self, name: str, args: dict[str, Any]) -> str:
            over.wait()
            return "too late"

    person = Answers(["once"])
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[Silent([send])])
    result = carry_out(runtime_of([spec], approvals=person))
    over.set()

    assert (RAN, result.output) == (["ann"], "fin")
    assert "TimeoutError" in person.asked[0].description

"""Asking about calls: modes, answers, who is told, and that what was shown is what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset

from llm_do import (
    AbortedError,
    ApprovalDecision,
    CallContext,
    LoopError,
    PermissionDeniedError,
    RunApprovalPolicy,
    Runtime,
    tool,
)
from llm_do.toolsets.approval import set_toolset_approval_config
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def send(to: str) -> str:
    """Send a letter."""
    RAN.append(to)
    return f"sent to {to}"


def sender(*calls: Any, **fields: Any) -> Any:
    """An agent that makes these calls at once and then ends."""
    return agent("main", script(list(calls) or [call("send", to="ann")], "fin"), tools=[send], **fields)


# -- modes


def test_approve_all_allows_what_is_asked_and_says_so() -> None:
    runtime = runtime_of([sender()], approvals="approve_all")
    ear = heard(runtime)
    result = carry_out(runtime)

    assert RAN == ["ann"]
    assert (result.status, result.exit_code) == ("completed", 0)
    [granted] = result.approvals
    assert (granted.tool, granted.args, granted.agent_path) == ("send", {"to": "ann"}, "main")
    assert result.denials == []
    assert "approval_requested" not in ear.types


def test_with_nobody_to_ask_the_call_is_denied_and_the_exit_code_says_so() -> None:
    result = carry_out(Runtime(project_of([sender()])))

    assert RAN == []
    assert (result.status, result.output, result.exit_code) == ("denied", "fin", 4)
    [denial] = result.denials
    [(call_id, outcome, text)] = results_of(result.messages)
    assert outcome == "denied"
    assert denial.call_id == call_id
    for part in ("send", "--allow", "Do not retry"):
        assert part in text
    strict(result.messages)


def test_a_nested_denial_counts_in_the_exit_code_too() -> None:
    inner = agent("inner", script([call("send", to="bob")], "inner done"), tools=[send])
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])
    result = carry_out(Runtime(project_of([main, inner])))

    assert (result.status, result.output) == ("denied", "fin")
    assert result.denials[0].agent_path == "main/inner"


def test_a_limit_reached_after_such_a_denial_ends_with_code_four_too() -> None:
    spec = agent("main", script([call("send", to="ann")]), tools=[send])
    result = carry_out(Runtime(project_of([spec])))

    assert isinstance(result.error, LoopError)
    assert (result.status, result.exit_code) == ("denied", 4)


def test_a_run_that_failed_otherwise_keeps_its_own_status() -> None:
    spec = agent("main", script([call("send", to="ann")], ValueError("gone")), tools=[send])

    assert carry_out(Runtime(project_of([spec]))).status == "provider_failed"


def test_reject_all_is_asked_for_so_the_run_completes() -> None:
    result = carry_out(runtime_of([sender()], approvals="reject_all"))

    assert RAN == []
    assert (result.status, result.exit_code) == ("completed", 0)
    assert results_of(result.messages)[0][1] == "denied"
    assert len(result.denials) == 1


def test_the_projects_mode_is_the_default() -> None:
    assert carry_out(Runtime(project_of([sender()], approval_mode="approve_all"))).status == "completed"
    assert RAN == ["ann"]


@pytest.mark.parametrize("nonsense", ["always", 3, ["approve_all"]])
def test_a_mode_that_is_none_is_an_error(nonsense: Any) -> None:
    with pytest.raises(ValueError, match="approvals must be"):
        Runtime(project_of([sender()]), approvals=nonsense)


def test_allow_and_deny_patterns_of_the_session() -> None:
    runtime = Runtime(
        project_of([sender(call("send", to="ann"), call("send", to="bob"), call("send", to="eve"))]),
        allow=["send(to=a*)", "send(to=e*)"],
        deny=["send(to=eve)"],
    )
    result = carry_out(runtime)

    assert RAN == ["ann"]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied", "denied"]


# -- answers


def test_once_allows_one_call() -> None:
    person = Answers(["once", "deny"])
    result = carry_out(runtime_of([sender(call("send", to="ann"))], approvals=person))
    request = person.asked[0]

    assert RAN == ["ann"]
    assert (request.tool_name, dict(request.args), request.agent, request.agent_path) == (
        "send",
        {"to": "ann"},
        "main",
        "main",
    )
    assert request.reason
    assert request.run_id == result.run_id
    assert len(request.digest) == 64
    assert result.approvals[0].call_id == request.tool_call_id


def test_a_denial_tells_the_model_the_note_and_not_to_retry() -> None:
    person = Answers([ApprovalDecision("deny", note="use the staging server")])
    runtime = runtime_of([sender()], approvals=person)
    ear = heard(runtime)
    result = carry_out(runtime)

    assert RAN == []
    assert result.status == "completed"
    text = results_of(result.messages)[0][2]
    assert "use the staging server" in text
    assert "Do not retry" in text
    assert [event.decision for event in ear.of("approval_resolved")] == ["deny"]
    assert [event.status for event in ear.of("tool_result")] == ["denied"]


def test_session_allows_the_same_call_again_in_the_session_and_nothing_else() -> None:
    person = Answers(["session", "deny"])
    runtime = runtime_of([sender()], approvals=person)
    carry_out(runtime)
    carry_out(runtime)
    assert (RAN, len(person.asked)) == (["ann", "ann"], 1)

    runtime.registry.agent("main").model = script([call("send", to="bob")], "fin")
    carry_out(runtime)
    assert (RAN, len(person.asked)) == (["ann", "ann"], 2)


def test_a_session_answer_does_not_leak_to_another_agent_or_session() -> None:
    person = Answers(["session", "deny"])
    other = agent("other", script([call("send", to="ann")], "fin"), tools=[send])
    runtime = runtime_of([sender(), other], approvals=person)
    carry_out(runtime)
    carry_out(runtime, entry="other")
    assert (RAN, len(person.asked)) == (["ann"], 2)

    again = Answers(["deny"])
    carry_out(runtime_of([sender()], approvals=again))
    assert (RAN, len(again.asked)) == (["ann"], 1)


def test_abort_ends_the_run() -> None:
    person = Answers(["abort"])
    inner = agent("inner", script([call("send", to="bob")], "x"), tools=[send])
    main = agent("main", script([call("inner", input="x")], "never"), toolsets=[inner])
    result = carry_out(runtime_of([main, inner], approvals=person))

    assert isinstance(result.error, AbortedError)
    assert result.status == "failed"
    assert result.error.agent_path == "main/inner"
    assert RAN == []
    strict(result.messages)
    strict(result.error.messages)


@pytest.mark.parametrize(
    "answer", [ValueError("broken"), TimeoutError(), None, True, "yes", ApprovalDecision("maybe")], ids=repr
)  # type: ignore[arg-type]
def test_a_callback_that_fails_or_talks_nonsense_denies(answer: Any) -> None:
    async def callback(request: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    result = carry_out(runtime_of([sender()], approvals=callback))

    assert RAN == []
    assert result.output == "fin"
    assert results_of(result.messages)[0][1] == "denied"


def test_a_callback_that_is_not_async_works_too() -> None:
    assert carry_out(runtime_of([sender()], approvals=lambda request: ApprovalDecision("once"))).status == "completed"
    assert RAN == ["ann"]


def test_denials_can_end_the_run_at_once() -> None:
    for options in (
        {"approvals": RunApprovalPolicy("reject_all", return_permission_errors=False)},
        {"approvals": "reject_all", "return_permission_errors": False},
    ):
        inner = agent("inner", script([call("send", to="bob")], "x"), tools=[send])
        main = agent("main", script([call("inner", input="x")], "never"), toolsets=[inner])
        result = carry_out(runtime_of([main, inner], **options))

        assert isinstance(result.error, PermissionDeniedError)
        assert result.error.agent_path == "main/inner"
        assert len(result.denials) == 1
        strict(result.messages)


def test_a_run_ended_by_a_denial_for_lack_of_a_person_is_denied_and_by_any_other_is_failed() -> None:
    def ended(**options: Any) -> tuple[str, int]:
        main = agent("main", script([call("send", to="bob")], "never"), tools=[send])
        result = carry_out(runtime_of([main], return_permission_errors=False, **options))
        assert isinstance(result.error, PermissionDeniedError)
        return result.status, result.exit_code

    assert ended(approvals="prompt") == ("denied", 4)
    assert ended(approvals="reject_all") == ("failed", 1)


# -- questions at once


def crowd(k: int, *, same: bool) -> list[Any]:
    """k agents, each asking for k calls at once."""
    workers = [
        agent(f"w{n}", script([call("send", to="x" if same else f"{n}-{m}") for m in range(k)], "ok"), tools=[send])
        for n in range(k)
    ]
    return [
        agent("main", script([call(worker.name, input="go") for worker in workers], "fin"), toolsets=workers),
        *workers,
    ]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_each_of_many_questions_is_asked_once_and_one_at_a_time(k: int) -> None:
    asked: list[str] = []
    open_now = most = 0

    async def person(request: Any) -> ApprovalDecision:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        asked.append(request.args["to"])
        await asyncio.sleep(0)
        open_now -= 1
        return ApprovalDecision("deny" if request.args["to"].endswith("1") else "once")

    runtime = runtime_of(crowd(k, same=False), approvals=person)
    ear = heard(runtime)
    result = carry_out(runtime)

    everything = sorted(f"{n}-{m}" for n in range(k) for m in range(k))
    assert sorted(asked) == everything
    assert most == 1
    assert sorted(RAN) == [one for one in everything if not one.endswith("1")]
    requested = [event.args["to"] for event in ear.of("approval_requested")]
    assert asked == requested
    assert result.output == "fin"
    for record in result.calls:
        strict(record.messages)
        told = [text for _, outcome, text in results_of(record.messages) if outcome == "success"]
        assert told == [f"sent to {record.path[-1]}-{m}" for m in range(k) if m != 1]


def test_identical_calls_are_asked_once_per_agent() -> None:
    person = Answers(["once"])
    result = carry_out(runtime_of(crowd(3, same=True), approvals=person))

    assert sorted(request.agent_path for request in person.asked) == ["main/w0", "main/w1", "main/w2"]
    assert RAN == ["x"] * 9
    assert len(result.approvals) == 9


def test_a_cancelled_run_takes_its_question_down_and_the_next_is_asked() -> None:
    async def scenario() -> None:
        shown: list[str] = []
        gone: list[str] = []
        first_shown = asyncio.Event()

        async def person(request: Any) -> ApprovalDecision:
            shown.append(request.args["to"])
            if request.args["to"] == "first":
                first_shown.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    gone.append("first")
                    raise
            return ApprovalDecision("once")

        specs = [agent(name, script([call("send", to=name)], "fin"), tools=[send]) for name in ("first", "second")]
        runtime = runtime_of(specs, approvals=person)
        first = asyncio.ensure_future(runtime.run("go"))
        await first_shown.wait()
        second = asyncio.ensure_future(runtime.run("go", entry="second"))
        while len(runtime.running) < 2 or len(shown) < 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        assert (await second).output == "fin"
        assert (shown, gone, RAN) == (["first", "second"], ["first"], ["second"])

    asyncio.run(scenario())


def test_a_shared_question_survives_one_of_its_two_waiters() -> None:
    shown, answer = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def person(request: Any) -> ApprovalDecision:
        asked.append(request.args["to"])
        shown.set()
        await answer.wait()
        return ApprovalDecision("once")

    async def main(input: Any, ctx: CallContext) -> str:
        first = asyncio.ensure_future(ctx.call("worker", "a"))
        await shown.wait()
        second = asyncio.ensure_future(ctx.call("worker", "b"))
        while len(ear.events) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        answer.set()
        return await second

    worker = agent("worker", script([call("send", to="x")], "ok"), tools=[send])
    runtime = runtime_of([worker], main, approvals=person)
    ear = heard(runtime, "approval_requested")
    result = carry_out(runtime)

    assert result.output == "ok"
    assert (asked, RAN) == (["x"], ["x"])


# -- what is approved is what runs


def test_arguments_changed_after_being_shown_are_asked_about_again() -> None:
    held: list[dict[str, Any]] = []
    shown: list[Any] = []

    def keep(agent: Any, tool_name: str, arguments: dict[str, Any]) -> None:
        held.append(arguments)

    async def person(request: Any) -> ApprovalDecision:
        shown.append(dict(request.args))
        if len(shown) == 1:
            held[0]["to"] = "eve"
        return ApprovalDecision("once")

    result = carry_out(runtime_of([sender(hooks=[("pre_tool_call", keep)])], approvals=person))

    assert shown == [{"to": "ann"}, {"to": "eve"}]
    assert RAN == ["eve"]
    assert [record.args for record in result.approvals] == [{"to": "eve"}]


def test_arguments_that_never_stop_changing_are_denied() -> None:
    held: list[dict[str, Any]] = []
    shown: list[Any] = []

    async def person(request: Any) -> ApprovalDecision:
        shown.append(dict(request.args))
        held[0]["to"] += "!"
        return ApprovalDecision("once")

    spec = sender(hooks=[("pre_tool_call", lambda agent, tool_name, arguments: held.append(arguments))])
    result = carry_out(runtime_of([spec], approvals=person))

    assert RAN == []
    assert len(shown) == 3
    assert results_of(result.messages)[0][1] == "denied"


def test_a_changed_nested_argument_is_noticed() -> None:
    held: list[dict[str, Any]] = []
    shown: list[Any] = []

    def post(letters: list[dict[str, str]]) -> str:
        RAN.append(letters)
        return "posted"

    async def person(request: Any) -> ApprovalDecision:
        shown.append(str(request.args["letters"]))
        request.args["letters"].append({"to": "the callback's own copy"})
        if len(shown) == 1:
            held[0]["letters"].append({"to": "eve"})
        return ApprovalDecision("once")

    spec = agent(
        "main",
        script([call("post", letters=[{"to": "ann"}])], "fin"),
        tools=[post],
        hooks=[("pre_tool_call", lambda agent, tool_name, arguments: held.append(arguments))],
    )
    carry_out(runtime_of([spec], approvals=person))

    assert len(shown) == 2
    assert RAN == [[{"to": "ann"}, {"to": "eve"}]]
    assert str(RAN[0]) == shown[1]


def test_what_a_callback_does_to_the_arguments_it_is_shown_never_runs_unseen() -> None:
    shown: list[Any] = []

    async def person(request: Any) -> ApprovalDecision:
        shown.append(dict(request.args))
        with suppress(TypeError):
            request.args["to"] = "eve"
        return ApprovalDecision("once")

    carry_out(runtime_of([sender()], approvals=person))

    assert {"to": RAN[0]} == shown[-1]


# -- the policy function


def opinion(function: Callable[..., Any], approvals: Any = "reject_all") -> Any:
    return carry_out(runtime_of([sender()], approvals=approvals, policy_function=function))


def test_a_policy_function_approves_rejects_asks_or_has_no_opinion() -> None:
    seen: list[Any] = []

    def approving(info: Any) -> str:
        seen.append(info)
        return "approve"

    opinion(approving)
    assert RAN == ["ann"]
    assert (seen[0].tool_name, dict(seen[0].args), seen[0].agent, seen[0].path, seen[0].depth) == (
        "send",
        {"to": "ann"},
        "main",
        "main",
        1,
    )

    assert opinion(lambda info: "reject", "approve_all").denials[0].tool == "send"
    person = Answers(["once"])
    opinion(lambda info: "prompt", person)
    assert len(person.asked) == 1
    opinion(lambda info: None, "approve_all")
    assert RAN == ["ann"] * 3


def test_an_async_policy_function_works_too() -> None:
    async def approving(info: Any) -> str:
        await asyncio.sleep(0)
        return "approve"

    opinion(approving)
    assert RAN == ["ann"]


async def _hangs(info: Any) -> str:
    await asyncio.Event().wait()
    return "approve"


def _raises(info: Any) -> str:
    raise RuntimeError("policy")


@pytest.mark.parametrize(
    "function", [_raises, _hangs, lambda info: "yes", lambda info: True, lambda info: ["approve"], lambda: "approve"]
)
def test_a_policy_function_that_fails_rejects(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do.runtime.approve.POLICY_SECONDS", 0.02)
    runtime = runtime_of([sender()], approvals="approve_all", policy_function=function)
    ear = heard(runtime, "warning")
    result = carry_out(runtime)

    assert RAN == []
    assert result.output == "fin"
    assert result.denials[0].tool == "send"
    assert "send" in ear.events[0].message


def test_a_policy_function_that_changes_what_it_judges_changes_nothing_unjudged() -> None:
    seen: list[str] = []

    def changing(info: Any) -> str:
        seen.append(info.args["to"])
        with suppress(TypeError):
            info.args["to"] = "eve"
        return "approve"

    opinion(changing)
    assert RAN == [] or [RAN[0]] == seen[-1:]


# -- what tools and toolsets say of themselves


def test_a_tools_own_verdict_is_heeded() -> None:
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
def test_a_pydantic_ai_tool_that_requires_approval_asks_inline(as_tool: bool) -> None:
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
    """A toolset with an opinion on arguments, a sentence and a diff."""

    def needs_approval(self, name: str, args: dict[str, Any]) -> Any:
        to = args["to"]
        if to == "broken":
            raise RuntimeError("can't judge")
        return {"friend": False, "stranger": True, "enemy": "deny"}[to]

    def get_approval_description(self, name: str, args: dict[str, Any]) -> str:
        return f"Send a letter to {args['to']}"

    def diff(self, name: str, args: dict[str, Any]) -> str:
        raise RuntimeError("no diff")


def test_a_toolsets_verdict_on_the_arguments_is_heeded_and_fails_closed() -> None:
    person = Answers(["once"])
    calls = [call("send", to=to) for to in ("friend", "stranger", "enemy", "broken")]
    spec = agent("main", script(calls, "fin"), toolsets=[Judging([send])])
    result = carry_out(runtime_of([spec], approvals=person))

    assert RAN == ["friend", "stranger"]
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


def test_a_prefix_changes_the_name_that_is_asked_about_and_not_the_verdict() -> None:
    from llm_do.project.agents import ToolsetRef

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


def test_attachments_to_an_agent_can_be_asked_about_alone() -> None:
    inner = agent("inner", script("in"))
    calls = [call("inner", input="x"), call("inner", input="y", attachments=["missing.txt"])]
    main = agent("main", script(calls, "fin"), toolsets=[inner])
    person = Answers(["deny"])
    result = carry_out(runtime_of([main, inner], approvals=person, agent_attachments_require_approval=True))

    assert [request.args["attachments"] for request in person.asked] == [["missing.txt"]]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied"]


def test_calls_from_python_are_not_asked_about_but_the_models_are() -> None:
    async def main(input: Any, ctx: Any) -> Any:
        return [await ctx.call("send", {"to": "python"}), await ctx.call("inner", "x")]

    inner = agent("inner", script([call("send", to="model")], "in"), tools=[send])
    result = carry_out(runtime_of([inner], main, tools={"send": send}, approvals="reject_all"))

    assert RAN == ["python"]
    assert result.output == ["sent to python", "in"]
    assert [record.agent_path for record in result.denials] == ["main/inner"]


def test_a_refused_call_is_not_asked_about() -> None:
    person = Answers(["once"])
    spec = sender(call("send", to=1), call("send"), call("nope"), call("send", '{"to":'))
    carry_out(runtime_of([spec], approvals=person))

    assert person.asked == []


def test_the_record_of_a_denial_is_complete_json() -> None:
    result = carry_out(runtime_of([sender()], approvals="reject_all"))
    [record] = result.to_dict()["denials"]

    assert set(record) == {"call_id", "agent_path", "tool", "args", "reason", "rule"}
    assert (record["tool"], record["args"], record["agent_path"]) == ("send", {"to": "ann"}, "main")

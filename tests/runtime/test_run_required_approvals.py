"""Approvals that tools ask for in PydanticAI's way: `approval_required(...)`, and a raised `ApprovalRequired`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, FunctionToolset, ModelRetry, RunContext
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import CombinedToolset, WrapperToolset

from llm_do import ApprovalDecision, CallContext, Context, HookPoint, Runtime, Toolkit, Update, run, tool
from llm_do.project.agents import ToolsetRef
from llm_do.toolsets.approval import set_toolset_approval_config
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


class Letter(BaseModel):
    to: str
    lines: list[str] = []


def post(letter: Letter, copies: int = 1) -> str:
    """Post a letter."""
    return letter.to * copies


SEEN: list[tuple[str, bool]] = []
"""Who was sent something, and whether the tool was told that the call was approved."""


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    SEEN.clear()


def send(ctx: RunContext[Any], to: str) -> str:
    """Send a letter."""
    SEEN.append((to, ctx.tool_call_approved))
    return f"sent to {to}"


def careful(ctx: RunContext[Any], to: str) -> str:
    """Send a letter; what goes to the boss wants a yes."""
    if to == "boss" and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"reason": "it goes to the boss"})
    SEEN.append((to, ctx.tool_call_approved))
    return f"sent to {to}"


def kit() -> Toolkit:
    """A toolkit whose tool changes its context and then raises."""
    made = Toolkit("kit", context=Context(initial_data={"sent": []}))

    @made.tool(name="careful")
    def gated(ctx: Any, to: str) -> Update:
        """Send a letter; what goes to the boss wants a yes."""
        ctx.state["sent"] = [*ctx.state["sent"], to]
        return Update(careful(ctx, to), sent=ctx.state["sent"])

    return made


def to_the_boss(ctx: RunContext[Any], tool_def: Any, args: dict[str, Any]) -> bool:
    return args["to"] == "boss"


def late(*, allow: bool = False) -> dict[str, Any]:
    """An agent's tools: a function that raises."""
    return {"tools": [tool(approval="allow")(careful) if allow else careful]}


def sender(to: str = "boss", name: str = "send", **fields: Any) -> Any:
    return agent("main", script([call(name, to=to)], "fin"), **fields)


def letters(**options: Any) -> FunctionToolset[Any]:
    return FunctionToolset([PydanticTool(send, **options)])


def policy(default: str = "allow", **rules: Any) -> Any:
    from llm_do.policy.rules import build_policy

    made, faults = build_policy({"default": default, **rules})
    assert not faults
    return made


SHAPES: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "raised by a function": ("careful", late),
    "raised by a function that is allowed": (
        "allowed",
        lambda: {"tools": [tool(approval="allow", name="allowed")(_copy(careful))]},
    ),
    "raised in a toolset": ("careful", lambda: {"toolsets": [FunctionToolset([careful])]}),
    "raised in a toolkit": ("kit_careful", lambda: {"toolsets": [ToolsetRef("kit", prefix="kit", value=kit())]}),
    "wrapped": ("send", lambda: {"toolsets": [letters().approval_required(to_the_boss)]}),
    "wrapped and prefixed": (
        "post_send",
        lambda: {"toolsets": [letters().approval_required(to_the_boss).prefixed("post")]},
    ),
    "wrapped over a prefix": (
        "post_send",
        lambda: {"toolsets": [letters().prefixed("post").approval_required(to_the_boss)]},
    ),
    "wrapped and renamed": (
        "write",
        lambda: {"toolsets": [letters().approval_required(to_the_boss).renamed({"write": "send"})]},
    ),
    "wrapped though its metadata allows": (
        "send",
        lambda: {"toolsets": [letters(metadata={"approval": "allow"}).approval_required(to_the_boss)]},
    ),
    "wrapped in a combination": (
        "send",
        lambda: {"toolsets": [CombinedToolset([letters().approval_required(to_the_boss)])]},
    ),
    "made by a factory": ("send", lambda: {"toolsets": [lambda ctx: letters().approval_required(to_the_boss)]}),
    "a validator of a function": ("send", lambda: {"tools": [PydanticTool(send, args_validator=validator)]}),
    "a validator in a wrapped toolset": (
        "x_send",
        lambda: {"toolsets": [letters(args_validator=validator).filtered(lambda ctx, tool: True).prefixed("x")]},
    ),
}


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    def copied(ctx: RunContext[Any], to: str) -> str:
        return function(ctx, to)

    return copied


def validator(ctx: RunContext[Any], to: str) -> None:
    if to == "boss" and not ctx.tool_call_approved:
        raise ApprovalRequired


@pytest.fixture(params=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    name, fields = SHAPES[request.param]
    return name, fields()


def test_a_yes_runs_the_call_which_is_told_of_it(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    person = Answers(["once"])
    runtime = runtime_of([sender(name=name, **fields)], approvals=person, policy=policy())
    ear = heard(runtime)
    result = carry_out(runtime)

    assert SEEN == [("boss", True)]
    assert len(person.asked) == 1
    assert [type for type in ear.types if "tool" in type or "approval" in type] == [
        "tool_call",
        "approval_requested",
        "approval_resolved",
        "tool_result",
    ]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"]
    assert (len(result.approvals), result.denials, result.usage.tool_calls) == (1, [], 1)
    strict(result.messages)


def test_a_no_is_a_denial_and_nothing_runs(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    runtime = runtime_of([sender(name=name, **fields)], approvals=Answers(["deny"]), policy=policy())
    result = carry_out(runtime)

    assert SEEN == []
    [(_, outcome, text)] = results_of(result.messages)
    assert outcome == "denied"
    assert "Do not retry" in text
    assert (result.status, len(result.denials), result.approvals) == ("completed", 1, [])


def test_with_nobody_to_ask_it_is_denied_and_the_exit_code_says_so(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    result = carry_out(Runtime(project_of([sender(name=name, **fields)], policy=policy())))

    assert SEEN == []
    assert (result.status, result.exit_code) == ("denied", 4)
    assert "--allow" in result.denials[0].reason


def test_other_arguments_run_unasked_where_the_default_allows(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    person = Answers(["deny"])
    carry_out(runtime_of([sender("ann", name, **fields)], approvals=person, policy=policy()))

    assert SEEN == [("ann", False)]
    assert person.asked == []


@pytest.mark.parametrize("how", ["rule", "function", "option", "mode", "reject"])
def test_an_explicit_yes_counts_as_the_approval(shape: tuple[str, dict[str, Any]], how: str) -> None:
    name, fields = shape
    options: dict[str, Any] = {}
    made: dict[str, Any] = {"policy": policy(allow=[name] if how == "rule" else [])}
    if how == "function":
        made["policy_function"] = lambda info: "approve"
    if how == "option":
        options["allow"] = [f"{name}(to=boss)"]
    if how == "mode":
        options["approvals"] = "approve_all"
    if how == "reject":
        options["approvals"] = "reject_all"
    result = carry_out(Runtime(project_of([sender(name=name, **fields)], **made), **options))

    assert ([] if how == "reject" else [("boss", True)]) == SEEN
    assert result.status == "completed"
    assert len(result.denials) == (1 if how == "reject" else 0)


def test_an_answer_for_the_session_is_the_approval_of_the_same_call(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    person = Answers(["session"])
    spec = agent("main", script([call(name, to="boss")], [call(name, to="boss")], "fin"), **fields)
    carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert SEEN == [("boss", True)] * 2
    assert len(person.asked) == 1


def test_where_everything_is_asked_about_there_is_one_question_and_its_yes_counts(
    shape: tuple[str, dict[str, Any]],
) -> None:
    name, fields = shape
    person = Answers(["once"])
    carry_out(runtime_of([sender(name=name, **fields)], approvals=person, policy=policy("ask")))

    assert SEEN == [("boss", True)]
    assert len(person.asked) == 1


def test_a_deny_still_wins(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    runtime = runtime_of([sender(name=name, **fields)], policy=policy(deny=[name]))

    assert len(carry_out(runtime).denials) == 1
    assert SEEN == []


def test_the_reason_that_a_tool_gives_is_shown_and_no_rule_is_named() -> None:
    person = Answers(["once"])
    runtime = runtime_of([sender(name="careful", **late())], approvals=person, policy=policy())
    ear = heard(runtime, "approval_requested")
    carry_out(runtime)

    [asked], [event] = person.asked, ear.events
    assert asked.reason == event.reason == "careful is asked about: it goes to the boss"
    assert (asked.rule, event.rule) == (None, None)


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        (None, "the tool wants it for these arguments"),
        ({"cost": 3}, '{"cost":3}'),
        ({"reason": 7}, '{"reason":7}'),
        ({"reason": "x" * 5000}, "x..."),
        ({"odd": object()}, "object"),
    ],
)
def test_any_metadata_makes_a_reason(metadata: Any, shown: str) -> None:
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


def test_hooks_fire_once_and_the_later_one_not_for_a_denial() -> None:
    fired: list[str] = []
    hooks = [
        (HookPoint.PRE_TOOL_CALL, lambda **data: fired.append(f"pre {data['tool_name']}")),
        (HookPoint.POST_TOOL_CALL, lambda **data: fired.append(f"post {data['result']}")),
    ]
    for answer in ("once", "deny"):
        spec = sender(name="careful", **late(), hooks=hooks)
        carry_out(runtime_of([spec], approvals=Answers([answer]), policy=policy()))

    assert fired == ["pre careful", "post sent to boss", "pre careful"]


def test_the_question_of_a_wrapper_comes_before_anything_inside_runs() -> None:
    order: list[str] = []

    class Loud(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            order.append("called")
            return await super().call_tool(name, tool_args, ctx, tool)

    class Person:
        async def __call__(self, request: Any) -> ApprovalDecision:
            order.append("asked")
            return ApprovalDecision("once")

    kit = Loud(letters()).approval_required(to_the_boss)
    carry_out(runtime_of([sender(toolsets=[kit])], approvals=Person(), policy=policy()))

    assert order == ["asked", "called"]


def test_a_wrapper_that_answers_itself_is_left_to_it() -> None:
    class Answering(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
            try:
                return await super().call_tool(name, tool_args, ctx, tool)
            except ApprovalRequired:
                return "not today"

    kit = Answering(letters().approval_required())
    person = Answers(["once"])
    result = carry_out(runtime_of([sender(toolsets=[kit])], approvals=person, policy=policy()))

    assert results_of(result.messages)[0][2] == "not today"
    assert person.asked == []


def test_a_wrappers_function_gets_the_call_as_pydantic_ai_gives_it() -> None:
    said: list[Any] = []

    def function(ctx: RunContext[CallContext], tool_def: Any, args: dict[str, Any]) -> bool:
        said.append((ctx.deps.path, ctx.tool_name, tool_def.name, args))
        return True

    kit = FunctionToolset([post]).approval_required(function).prefixed("x")
    spec = agent("main", script([call("x_post", letter={"to": "ann"})], "fin"), toolsets=[kit])
    carry_out(runtime_of([spec], approvals=Answers(["once"]), policy=policy()))

    assert said[0][:3] == ("main", "post", "post")
    assert said[0][3] == {"letter": Letter(to="ann"), "copies": 1}


def test_a_wrapper_whose_function_fails_lets_nothing_run() -> None:
    kit = letters().approval_required(lambda ctx, tool_def, args: args["nothing"])
    result = carry_out(runtime_of([sender(toolsets=[kit])], policy=policy()))

    assert SEEN == []
    assert "failed to judge the call" in result.denials[0].reason


def test_an_asynchronous_function_always_asks_as_in_pydantic_ai() -> None:
    async def function(ctx: Any, tool_def: Any, args: Any) -> bool:
        return False

    person = Answers(["once"])
    kit = letters().approval_required(function)  # type: ignore[arg-type]
    carry_out(runtime_of([sender("ann", toolsets=[kit])], approvals=person, policy=policy()))

    assert len(person.asked) == 1
    assert SEEN == [("ann", True)]


def test_a_tool_that_asks_again_after_the_yes_fails() -> None:
    def never() -> str:
        """Never satisfied."""
        raise ApprovalRequired

    person = Answers(["once"])
    spec = agent("main", script([call("never")], "fin"), tools=[never])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    [(_, outcome, text)] = results_of(result.messages)
    assert (outcome, len(person.asked)) == ("failed", 1)
    assert "ctx.tool_call_approved" in text


def test_a_validator_that_defers_is_a_refused_call() -> None:
    def defers(ctx: Any, to: str) -> None:
        raise CallDeferred

    spec = sender(tools=[PydanticTool(send, args_validator=defers)])
    result = carry_out(runtime_of([spec], policy=policy()))

    assert SEEN == []
    assert "CallDeferred" in results_of(result.messages)[0][2]
    assert result.status == "completed"


def test_what_a_validator_has_to_say_besides_is_heard_after_the_yes() -> None:
    async def strict_one(ctx: RunContext[Any], to: str) -> None:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        if to == "boss":
            raise ModelRetry("not to the boss")

    spec = agent(
        "main",
        script([call("send", to="boss"), call("send", to="ann")], "fin"),
        tools=[PydanticTool(send, args_validator=strict_one)],
    )
    person = Answers(["once"])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert SEEN == [("ann", True)]
    assert len(person.asked) == 2
    assert [(outcome, text) for _, outcome, text in results_of(result.messages)] == [
        ("failed", "not to the boss"),
        ("success", "sent to ann"),
    ]


def test_a_call_from_python_is_trusted() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("careful", {"to": "boss"})

    result = carry_out(Runtime(project_of([], main, tools={"careful": careful})))

    assert (result.output, SEEN) == ("sent to boss", [("boss", True)])


def test_the_approval_of_a_call_is_not_that_of_the_calls_it_leads_to() -> None:
    inner = agent("inner", script([call("send", to="ann")], "inner done"), tools=[send])
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])
    carry_out(runtime_of([main, inner], approvals="reject_all", policy=policy(allow=["inner"])))

    assert SEEN == [("ann", False)]


def test_calls_side_by_side_are_each_asked_about() -> None:
    person = Answers(["once", "deny", "once"])
    calls = [call("send", to="boss"), call("careful", to="boss"), call("send", to="ann")]
    kit = letters().approval_required(to_the_boss)
    spec = agent("main", script(calls, "fin"), tools=[careful], toolsets=[kit])
    result = carry_out(runtime_of([spec], approvals=person, policy=policy()))

    assert len(person.asked) == 2
    outcomes = [outcome for _, outcome, _ in results_of(result.messages)]
    assert sorted(outcomes) == ["denied", "success", "success"]
    assert ("ann", False) in SEEN


def test_what_is_said_of_a_toolset_from_python_holds_inside_its_wrappers() -> None:
    kit = letters()
    set_toolset_approval_config(kit, {"send": {"blocked": True}})
    spec = sender(name="x_send", toolsets=[kit.prefixed("x")])
    carry_out(runtime_of([spec], policy=policy()))
    assert SEEN == []

    class Asking(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> bool:
            return name == "send" and args["to"] == "boss"

    person = Answers(["deny"])
    spec = sender(name="x_send", toolsets=[Asking([send]).prefixed("x")])
    carry_out(runtime_of([spec], approvals=person, policy=policy()))
    assert (SEEN, len(person.asked)) == ([], 1)


@pytest.mark.parametrize(("answer", "sent"), [("once", ["boss"]), ("deny", [])])
def test_what_a_toolkits_tool_did_before_it_raised_is_not_kept(answer: str, sent: list[str]) -> None:
    spec = sender(name="kit_careful", toolsets=[ToolsetRef("kit", prefix="kit", value=kit())])
    runtime = runtime_of([spec], approvals=Answers([answer]), policy=policy())
    ear = heard(runtime, "state_changed")
    carry_out(runtime)

    assert [event.updates for event in ear.events] == ([{"sent": sent}] if sent else [])


def test_an_agent_that_somebody_else_built_is_asked_about_in_the_same_way() -> None:
    said = script([call("send", to="boss"), call("careful", to="boss")], "fin")
    own: Agent[Any, str] = Agent(said, tools=[careful], toolsets=[letters().approval_required(to_the_boss)])
    person = Answers(["once"])
    result = run.sync(own, "x", approvals=person)

    assert result.output == "fin"
    assert SEEN == [("boss", True)] * 2
    assert len(person.asked) == 2
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "success"]


def test_a_cancelled_run_takes_its_question_down() -> None:
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

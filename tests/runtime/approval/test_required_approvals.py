"""Each of PydanticAI's ways to require approval asks the same question and takes the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext, Tool as PydanticTool
from pydantic_ai.toolsets import CombinedToolset

from llm_do import Runtime, tool
from llm_do.project.agent_spec import ToolsetRef
from tests.runtime.approval.required import SEEN, careful, kit, late, letters, policy, send, sender, to_the_boss
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    SEEN.clear()


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


def test_an_approved_call_runs_and_sees_its_approval(shape: tuple[str, dict[str, Any]]) -> None:
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


def test_a_rejected_call_is_denied_and_does_not_run(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    runtime = runtime_of([sender(name=name, **fields)], approvals=Answers(["deny"]), policy=policy())
    result = carry_out(runtime)

    assert SEEN == []
    [(_, outcome, text)] = results_of(result.messages)
    assert outcome == "denied"
    assert "Do not retry" in text
    assert (result.status, len(result.denials), result.approvals) == ("completed", 1, [])


def test_without_a_person_a_required_approval_is_denied_with_exit_code_four(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    result = carry_out(Runtime(project_of([sender(name=name, **fields)], policy=policy())))

    assert SEEN == []
    assert (result.status, result.exit_code) == ("denied", 4)
    assert "--allow" in result.denials[0].reason


def test_other_arguments_run_without_approval_if_the_default_allows(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    person = Answers(["deny"])
    carry_out(runtime_of([sender("ann", name, **fields)], approvals=person, policy=policy()))

    assert SEEN == [("ann", False)]
    assert person.asked == []


@pytest.mark.sample(16)
@pytest.mark.parametrize("how", ["rule", "function", "option", "mode", "reject"])
def test_an_explicit_permission_counts_as_the_approval(shape: tuple[str, dict[str, Any]], how: str) -> None:
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


def test_a_call_that_needs_approval_for_two_reasons_prompts_once(
    shape: tuple[str, dict[str, Any]],
) -> None:
    name, fields = shape
    person = Answers(["once"])
    carry_out(runtime_of([sender(name=name, **fields)], approvals=person, policy=policy("ask")))

    assert SEEN == [("boss", True)]
    assert len(person.asked) == 1


def test_a_denial_still_wins(shape: tuple[str, dict[str, Any]]) -> None:
    name, fields = shape
    runtime = runtime_of([sender(name=name, **fields)], policy=policy(deny=[name]))

    assert len(carry_out(runtime).denials) == 1
    assert SEEN == []

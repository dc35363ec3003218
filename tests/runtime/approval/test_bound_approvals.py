"""The arguments that a person approved are the ones that run."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from llm_do import ApprovalDecision
from tests.runtime.approval.letters import RAN, sender
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def test_arguments_changed_after_the_approval_need_another() -> None:
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


def test_a_changed_nested_argument_needs_another_approval() -> None:
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


def test_a_callbacks_changes_to_the_arguments_never_run_unapproved() -> None:
    shown: list[Any] = []

    async def person(request: Any) -> ApprovalDecision:
        shown.append(dict(request.args))
        with suppress(TypeError):
            request.args["to"] = "eve"
        return ApprovalDecision("once")

    carry_out(runtime_of([sender()], approvals=person))

    assert {"to": RAN[0]} == shown[-1]

"""`ApprovalToolset`: the policy around one toolset, in a PydanticAI agent outside a Runtime."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do import AbortedError, ApprovalDecision, ApprovalToolset
from llm_do.toolsets.approval import get_toolset_approval_config, set_toolset_approval_config
from tests.support.history import results_of, strict
from tests.support.runs import Answers
from tests.support.scripted import call, script
from tests.support.tables import each_row

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def send(to: str) -> str:
    RAN.append(to)
    return "sent"


def outcomes(toolset: Any, *calls: Any) -> list[str]:
    """Run a PydanticAI agent with this toolset and return how each call ended."""
    agent = Agent(script(list(calls), "fin"), toolsets=[toolset])
    result = asyncio.run(agent.run("go"))
    assert result.output == "fin"
    strict(result.all_messages())
    return [outcome for _, outcome, _ in results_of(result.all_messages())]


def test_without_a_person_to_ask_calls_are_denied() -> None:
    assert outcomes(ApprovalToolset(FunctionToolset([send])), call("send", to="ann")) == ["denied"]
    assert RAN == []


def test_modes_and_rules_decide() -> None:
    assert outcomes(ApprovalToolset(FunctionToolset([send]), "approve_all"), call("send", to="ann")) == ["success"]
    guarded = ApprovalToolset(
        FunctionToolset([send]), "reject_all", {"allow": ["send(to=a*)"], "deny": ["send(to=ann)"]}
    )
    assert outcomes(guarded, call("send", to="ann"), call("send", to="abe"), call("send", to="bob")) == [
        "denied",
        "success",
        "denied",
    ]
    assert RAN == ["ann", "abe"]


def test_a_persons_answer_is_remembered_for_the_session() -> None:
    person = Answers(["session", "deny"])
    guarded = ApprovalToolset(FunctionToolset([send]), person)
    assert outcomes(guarded, call("send", to="ann")) == ["success"]
    assert outcomes(guarded, call("send", to="ann"), call("send", to="bob")) == ["success", "denied"]
    assert [dict(request.args) for request in person.asked] == [{"to": "ann"}, {"to": "bob"}]


def test_a_permanent_answer_applies_to_the_session() -> None:
    person = Answers(["always", "deny"])
    guarded = ApprovalToolset(FunctionToolset([send]), person)
    assert outcomes(guarded, call("send", to="ann")) == ["success"]
    assert outcomes(guarded, call("send", to="ann"), call("send", to="bob")) == ["success", "denied"]
    assert [request.call.args for request in person.asked if request.call] == [{"to": "ann"}, {"to": "bob"}]


def test_a_note_reaches_the_model() -> None:
    agent = Agent(
        script([call("send", to="x")], "fin"),
        toolsets=[ApprovalToolset(FunctionToolset([send]), Answers([ApprovalDecision("deny", "not now")]))],
    )
    result = asyncio.run(agent.run("go"))
    [(_, _, text)] = results_of(result.all_messages())
    assert "not now" in text
    assert "Do not retry" in text


def test_abort_ends_the_agents_run() -> None:
    agent = Agent(
        script([call("send", to="x")], "fin"), toolsets=[ApprovalToolset(FunctionToolset([send]), Answers(["abort"]))]
    )
    with pytest.raises(AbortedError):
        asyncio.run(agent.run("go"))
    assert RAN == []


def test_a_toolsets_own_decision_counts_and_fails_closed() -> None:
    class Deciding(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> bool:
            if args["to"] == "broken":
                raise RuntimeError("can't judge")
            return args["to"] != "friend"

    guarded = ApprovalToolset(Deciding([send]), "reject_all")
    assert outcomes(guarded, call("send", to="friend"), call("send", to="x"), call("send", to="broken")) == [
        "success",
        "denied",
        "denied",
    ]


class Later:
    """An awaitable."""

    def __await__(self) -> Any:
        yield


@each_row("answer", ["blocked", "DENY", "", Later()])
def test_an_invalid_decision_denies(answer: Any) -> None:
    class Deciding(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> Any:
            return answer

    assert outcomes(ApprovalToolset(Deciding([send]), "approve_all"), call("send", to="ann")) == ["denied"]
    assert RAN == []


def test_an_awaitable_decision_denies_and_is_closed() -> None:
    async def decide() -> str:
        return "allow"

    pending = decide()

    class Deciding(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: dict[str, Any]) -> Any:
            return pending

    assert outcomes(ApprovalToolset(Deciding([send]), "approve_all"), call("send", to="ann")) == ["denied"]
    assert inspect.getcoroutinestate(pending) == inspect.CORO_CLOSED


def test_a_toolset_without_a_description_adds_none_to_the_question() -> None:
    class Silent(FunctionToolset[Any]):
        def get_approval_description(self, name: str, args: dict[str, Any]) -> None:
            return None

    person = Answers(["once"])
    outcomes(ApprovalToolset(Silent([send]), person), call("send", to="ann"))
    assert person.asked[0].description == ""


@pytest.mark.parametrize("late", [False, True])
def test_an_approval_that_the_toolset_itself_requires_is_requested_once(late: bool) -> None:
    def careful(ctx: RunContext[Any], to: str) -> str:
        if late and not ctx.tool_call_approved:
            raise ApprovalRequired
        return send(to)

    inner = FunctionToolset([careful])
    toolset = inner if late else inner.approval_required()
    for answer, outcome in (("once", "success"), ("deny", "denied")):
        person = Answers([answer])
        guarded = ApprovalToolset(toolset, person, {"default": "allow"})
        assert outcomes(guarded, call("careful", to="ann")) == [outcome]
        assert len(person.asked) == 1
    assert outcomes(ApprovalToolset(toolset, rules={"allow": ["careful"]}), call("careful", to="bob")) == ["success"]
    assert RAN == ["ann", "bob"]


def test_a_pre_approval_stays_with_the_toolset() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([send])
    assert get_toolset_approval_config(toolset) == {}
    set_toolset_approval_config(toolset, {"send": {"pre_approved": True}})

    assert get_toolset_approval_config(toolset) == {"send": {"pre_approved": True}}
    assert outcomes(ApprovalToolset(toolset, "reject_all"), call("send", to="ann")) == ["success"]


def test_invalid_rules_are_an_immediate_error() -> None:
    with pytest.raises(ValueError, match="send"):
        ApprovalToolset(FunctionToolset([send]), rules={"allow": ["send(("]})

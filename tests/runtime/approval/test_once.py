"""An answer is for one execution of what was shown; for several only if it says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_do import ApprovalDecision, Project, Runtime, tool
from tests.runtime.approval.letters import RAN, send, sender
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def five(*others: Any) -> Any:
    return sender(*(call("send", to="eve") for _ in range(5)), *others)


def counts(person: Answers) -> list[int]:
    return [request.identical for request in person.asked]


def test_once_is_one_of_five_identical_executions() -> None:
    person = Answers(["once", "deny"])
    result = carry_out(runtime_of([five()], approvals=person))

    assert RAN == ["eve"]
    assert counts(person) == [5, 4]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"] + ["denied"] * 4
    assert (len(result.approvals), len(result.denials)) == (1, 4)


def test_each_once_is_one_execution() -> None:
    person = Answers(["once"])
    carry_out(runtime_of([five()], approvals=person))

    assert RAN == ["eve"] * 5
    assert counts(person) == [5, 4, 3, 2, 1]


def test_all_is_all_of_them_and_no_later_ones() -> None:
    person = Answers(["all", "deny"])
    spec = agent(
        "main",
        script([call("send", to="eve") for _ in range(3)], [call("send", to="eve") for _ in range(2)], "fin"),
        tools=[send],
    )
    carry_out(runtime_of([spec], approvals=person))

    assert RAN == ["eve"] * 3
    assert counts(person) == [3, 2]


def test_all_is_offered_only_where_there_are_several() -> None:
    person = Answers(["once", "all"])
    carry_out(runtime_of([five(call("send", to="bob"))], approvals=person))

    offered = {request.args["to"]: "all" in request.answers for request in reversed(person.asked)}
    assert offered == {"bob": False, "eve": True}
    assert RAN.count("bob") == 1


def test_identical_calls_after_one_another_are_counted_too() -> None:
    """Calls to one gated tool run in turn, so the second is decided about after the first has run."""

    @tool(enables_states=["paid"])
    def pay(to: str) -> str:
        """Pay."""
        RAN.append(to)
        return "paid"

    person = Answers(["all"])
    spec = agent("main", script([call("pay", to="eve") for _ in range(3)], "fin"), tools=[pay])
    carry_out(runtime_of([spec], approvals=person))

    assert (counts(person), RAN) == ([3], ["eve"] * 3)


def test_calls_without_effects_are_joined_silently() -> None:
    @tool(repeatable=True)
    def look(at: str) -> str:
        """Look."""
        RAN.append(at)
        return "seen"

    person = Answers(["once", "deny"])
    spec = agent("main", script([call("look", at="it") for _ in range(4)], "fin"), tools=[look])
    carry_out(runtime_of([spec], approvals=person))

    assert (counts(person), RAN) == ([1], ["it"] * 4)


def test_an_answer_for_all_is_not_for_a_call_that_has_changed() -> None:
    held: list[dict[str, Any]] = []

    def change_the_last(agent: Any, tool_name: str, arguments: dict[str, Any]) -> None:
        held.append(arguments)
        if len(held) == 3:
            arguments["to"] = "mallory"

    person = Answers(["all", "deny"])
    spec = sender(*(call("send", to="eve") for _ in range(3)), hooks=[("pre_tool_call", change_the_last)])
    carry_out(runtime_of([spec], approvals=person))

    assert RAN == ["eve"] * 2
    assert [request.args["to"] for request in person.asked] == ["eve", "mallory"]


def test_abort_ends_the_run_for_all_identical_calls() -> None:
    person = Answers(["abort"])
    result = carry_out(runtime_of([five()], approvals=person))

    assert (type(result.error).__name__, RAN, len(person.asked)) == ("AbortedError", [], 1)


@pytest.mark.parametrize("raised", [ConnectionError("the desk is closed"), TimeoutError()])
def test_a_callback_that_raises_denies_in_true_words_and_ends_as_unattended(raised: Exception) -> None:
    person = Answers([raised])
    result = carry_out(runtime_of([five()], approvals=person))

    assert (result.status, RAN) == ("denied", [])
    text = results_of(result.messages)[0][2]
    assert "asking failed" in text
    assert type(raised).__name__ in text
    assert "person denied" not in text
    assert len(person.asked) == 1


def test_a_callback_can_say_that_no_one_could_be_asked() -> None:
    person = Answers([ApprovalDecision("unanswered", note="nobody is on call")])
    result = carry_out(runtime_of([sender()], approvals=person))

    assert result.status == "denied"
    assert result.denials[0].reason == "send is denied: nobody is on call"


@pytest.mark.parametrize("answer", [None, "yes", True, ApprovalDecision("yes"), ApprovalDecision("once", note=3)])  # type: ignore[arg-type]
def test_nonsense_from_a_callback_is_no_answer(answer: object) -> None:
    async def person(request: Any) -> Any:
        return answer

    result = carry_out(runtime_of([sender()], approvals=person))

    assert (result.status, RAN) == ("denied", [])
    assert "the approval callback returned" in result.denials[0].reason


POLICY = """
def decide(call):
    price = call.args["price"]
    return "approve"
"""


def test_a_policy_function_that_crashes_is_named_with_its_line_and_counts_as_unattended(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(POLICY)
    (tmp_path / "tools.py").write_text(
        'def send(to: str) -> str:\n    """Send."""\n    return "sent"\n\nTOOLS = [send]\n'
    )
    (tmp_path / "main.agent").write_text("---\nname: main\ntools: [send]\n---\nSend.\n")
    (tmp_path / "answers.yaml").write_text("- tools: [{name: send, args: {to: ann}}]\n- text: fin\n")
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "model": "script:answers.yaml",'
        ' "python_files": ["rules.py", "tools.py"], "approvals": {"policy": "rules.py:decide"}}'
    )
    warned: list[str] = []
    runtime = Runtime(Project.load(tmp_path), approvals="approve_all")
    runtime.on("warning", lambda event: warned.append(event.message))
    result = carry_out(runtime)

    assert result.status == "denied"
    fault = "the policy function rules.py:decide raised KeyError: 'price' (rules.py:3)"
    assert result.denials[0].reason == f"send is denied: {fault}"
    assert warned == [f"{fault}; the call of send is denied"]


def test_a_deny_rule_decides_before_a_policy_function_that_crashes() -> None:
    def broken(info: Any) -> str:
        raise KeyError("price")

    from llm_do.policy.rules import build_policy

    policy, _ = build_policy({"deny": ["send"]})
    result = carry_out(runtime_of([sender()], policy=policy, policy_function=broken))

    assert result.status == "completed"
    assert "denied by the rule send" in result.denials[0].reason


def test_a_waiting_identical_call_does_not_block_others_when_its_run_ends() -> None:
    async def scenario() -> list[str]:
        asked: list[str] = []
        shown = asyncio.Event()

        async def person(request: Any) -> ApprovalDecision:
            asked.append(f"{request.args['to']} {request.identical}")
            if len(asked) == 1:
                shown.set()
                await asyncio.Event().wait()
            return ApprovalDecision("all")

        runtime = runtime_of(
            [five(), agent("other", script([call("send", to="bob")], "fin"), tools=[send])], approvals=person
        )
        first = asyncio.ensure_future(runtime.run("go"))
        await shown.wait()
        second = asyncio.ensure_future(runtime.run("go", entry="other"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        await runtime.aclose()
        return asked

    assert asyncio.run(scenario()) == ["eve 5", "bob 1"]
    assert RAN == ["bob"]

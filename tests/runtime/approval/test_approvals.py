"""Approvals: modes, answers and what is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import (
    AbortedError,
    ApprovalDecision,
    LoopError,
    PermissionDeniedError,
    RunApprovalPolicy,
    Runtime,
    UsageError,
)
from tests.runtime.approval.letters import RAN, send, sender
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


# -- modes


def test_approve_all_approves_every_question_and_records_that() -> None:
    runtime = runtime_of([sender()], approvals="approve_all")
    ear = heard(runtime)
    result = carry_out(runtime)

    assert RAN == ["ann"]
    assert (result.status, result.exit_code) == ("completed", 0)
    [granted] = result.approvals
    assert (granted.tool, granted.args, granted.agent_path) == ("send", {"to": "ann"}, "main")
    assert result.denials == []
    assert "approval_requested" not in ear.types


def test_without_a_person_the_call_is_denied_with_exit_code_four() -> None:
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


def test_a_nested_denial_sets_the_exit_code_too() -> None:
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


def test_reject_all_is_deliberate_so_the_run_completes() -> None:
    result = carry_out(runtime_of([sender()], approvals="reject_all"))

    assert RAN == []
    assert (result.status, result.exit_code) == ("completed", 0)
    assert results_of(result.messages)[0][1] == "denied"
    assert len(result.denials) == 1


def test_the_projects_mode_is_the_default() -> None:
    assert carry_out(Runtime(project_of([sender()], approval_mode="approve_all"))).status == "completed"
    assert RAN == ["ann"]


@pytest.mark.parametrize("nonsense", ["always", 3, ["approve_all"]])
def test_an_unknown_mode_is_an_error(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="approvals must be 'prompt', 'approve_all', 'reject_all', a callback or"):
        Runtime(project_of([sender()]), approvals=nonsense)


def test_a_misspelt_mode_is_an_error_with_the_right_one() -> None:
    with pytest.raises(UsageError) as error:
        Runtime(project_of([sender()]), approvals="aprove_all")  # type: ignore[arg-type]
    assert error.value.hint == "did you mean `approve_all`?"

    with pytest.raises(UsageError, match="the mode of approvals must be 'prompt', 'approve_all', 'reject_all'"):
        RunApprovalPolicy("aprove_all")  # type: ignore[arg-type]


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


def test_an_answer_for_once_allows_one_call() -> None:
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


def test_an_answer_for_the_session_allows_only_the_same_call_again() -> None:
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


def test_a_rule_without_an_agent_applies_to_the_asking_agent() -> None:
    person = Answers([ApprovalDecision("session", pattern="send(to=*)"), "deny"])
    other = agent("other", script([call("send", to="ann")], "fin"), tools=[send])
    runtime = runtime_of([sender(call("send", to="ann"), call("send", to="bob")), other], approvals=person)
    carry_out(runtime)
    assert (sorted(RAN), len(person.asked)) == (["ann", "bob"], 1)

    carry_out(runtime, entry="other")
    assert (len(RAN), len(person.asked)) == (2, 2)


def test_a_rule_for_any_agent_must_be_explicit() -> None:
    person = Answers([ApprovalDecision("session", pattern="*:send(to=*)"), "deny"])
    other = agent("other", script([call("send", to="bob")], "fin"), tools=[send])
    runtime = runtime_of([sender(), other], approvals=person)
    carry_out(runtime)
    carry_out(runtime, entry="other")

    assert (RAN, len(person.asked)) == (["ann", "bob"], 1)


@pytest.mark.parametrize("rule", ["send(to=bob)", "other:send", "burn"])
def test_a_rule_that_does_not_allow_its_own_call_is_not_kept(rule: str) -> None:
    person = Answers([ApprovalDecision("session", pattern=rule), "deny"])
    spec = agent("main", script([call("send", to="ann")], [call("send", to="bob")], "fin"), tools=[send])
    runtime = runtime_of([spec], approvals=person)
    ear = heard(runtime, "warning")
    carry_out(runtime)

    assert (RAN, len(person.asked)) == (["ann"], 2)
    assert "is not kept" in ear.events[0].message


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
    "answer",
    [
        *(ValueError("broken"), TimeoutError(), asyncio.CancelledError()),
        *(None, True, "yes", ApprovalDecision("maybe")),  # type: ignore[arg-type]
        *(ApprovalDecision("session", pattern=5), ApprovalDecision("once", note=None)),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_callback_that_fails_or_returns_nonsense_denies(answer: Any) -> None:
    async def callback(request: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    result = carry_out(runtime_of([sender()], approvals=callback))

    assert RAN == []
    assert result.output == "fin"
    assert results_of(result.messages)[0][1] == "denied"


def test_a_synchronous_callback_works_too() -> None:
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


# -- what is recorded


def test_an_invalid_call_prompts_for_no_approval() -> None:
    person = Answers(["once"])
    spec = sender(call("send", to=1), call("send"), call("nope"), call("send", '{"to":'))
    carry_out(runtime_of([spec], approvals=person))

    assert person.asked == []


def test_the_record_of_a_denial_is_complete() -> None:
    result = carry_out(runtime_of([sender()], approvals="reject_all"))
    [record] = result.to_dict()["denials"]

    assert set(record) == {"call_id", "agent_path", "tool", "args", "reason", "rule", "needed"}
    assert (record["tool"], record["args"], record["agent_path"]) == ("send", {"to": "ann"}, "main")

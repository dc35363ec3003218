"""Policy functions and approval callbacks can't change what runs, and their failures never allow anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, RunResult, Runtime
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script


class Panic(BaseException):
    """As libraries in other languages raise when they break down."""


def carried_out(
    arguments: dict[str, Any], *, policy: Any = None, approvals: Any = "approve_all", status: str = "completed"
) -> tuple[list[Any], RunResult]:
    sent: list[Any] = []

    def send(to: str, items: list[str] | None = None) -> str:
        """Send."""
        sent.append((to, items))
        return "sent"

    main = agent("main", script(call("send", **arguments), "done"), tools=[send])
    result = carry_out(Runtime(project_of([main], policy_function=policy), approvals=approvals))
    assert (result.status, result.output) == (status, "done"), result.error
    return sent, result


def spoiling(args: Any) -> None:
    args["to"] = "mallory"
    if args.get("items"):
        args["items"].append("more")
    args["bcc"] = "mallory"


@pytest.mark.parametrize("arguments", [{"to": "ann"}, {"to": "ann", "items": ["one"]}])
def test_a_policy_function_cannot_change_the_arguments(arguments: dict[str, Any]) -> None:
    def policy(info: Any) -> str:
        spoiling(info.args)
        return "approve"

    sent, _ = carried_out(arguments, policy=policy, approvals="reject_all")
    assert sent == [("ann", arguments.get("items"))]


@pytest.mark.parametrize("arguments", [{"to": "ann"}, {"to": "ann", "items": ["one"]}])
def test_a_callback_cannot_change_the_arguments(arguments: dict[str, Any]) -> None:
    asked: list[ApprovalRequest] = []

    async def callback(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        spoiling(request.args)
        return ApprovalDecision("once")

    sent, result = carried_out(arguments, approvals=callback)
    assert sent == [("ann", arguments.get("items"))]
    assert len(asked) == 1
    assert [dict(record.args).get("to") for record in result.approvals] == ["ann"]


def exits() -> Any:
    raise SystemExit(0)


def panics() -> Any:
    raise Panic


@pytest.mark.parametrize("broken", [exits, panics])
def test_a_failing_policy_function_rejects(broken: Callable[[], Any]) -> None:
    sent, result = carried_out({"to": "ann"}, policy=lambda info: broken(), status="denied")
    assert sent == []
    assert len(result.denials) == 1


@pytest.mark.parametrize("broken", [exits, panics])
def test_a_failing_callback_denies(broken: Callable[[], Any]) -> None:
    async def callback(request: ApprovalRequest) -> ApprovalDecision:
        await asyncio.sleep(0)
        return broken()

    sent, result = carried_out({"to": "ann"}, approvals=callback, status="denied")
    assert sent == []
    assert len(result.denials) == 1

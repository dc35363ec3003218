"""A hook keeps the response that it got or returned, and changes it while a person is asked about its tool calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from llm_do import AgentSpec, ApprovalDecision, ApprovalRequest, HookError, HookPoint, Runtime
from tests.support.runs import carry_out, project_of
from tests.support.scripted import call, script


def calls_of(response: ModelResponse) -> list[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


@pytest.mark.parametrize("returns", [True, False])
def test_the_conversation_has_what_was_approved_and_run(returns: bool) -> None:
    kept: list[ModelResponse] = []
    ran: list[str] = []
    shown: list[Any] = []

    def send(to: str, options: dict[str, str]) -> str:
        """Send a letter."""
        ran.append(f"{to} {options['by']}")
        return "sent"

    def hook(agent: Any, response: ModelResponse) -> ModelResponse | None:
        made = [
            ToolCallPart("send", {"to": "bob", "options": {"by": "post"}}, each.tool_call_id)
            for each in calls_of(response)
        ]
        kept.append(replace(response, parts=made) if returns and made else response)
        return kept[-1] if returns else None

    async def approve(request: ApprovalRequest) -> ApprovalDecision:
        shown.append(dict(request.args))
        for each in calls_of(kept[0]):
            assert isinstance(each.args, dict)
            each.args["to"] = "eve"
            each.args["options"]["by"] = "hand"
        return ApprovalDecision("once")

    spec = AgentSpec("main", tools=[send], hooks=[(HookPoint.POST_LLM_CALL, hook)])
    model = script(call("send", to="bob", options={"by": "post"}), "done")
    result = carry_out(Runtime(project_of([spec]), model=model, approvals=approve))

    assert result.status == "completed"
    assert shown == [{"to": "bob", "options": {"by": "post"}}]
    assert ran == ["bob post"]
    (made,) = (each for message in result.messages if isinstance(message, ModelResponse) for each in calls_of(message))
    assert made.args_as_dict() == {"to": "bob", "options": {"by": "post"}}


def test_a_response_that_is_changed_and_not_returned_is_an_error() -> None:
    def hook(agent: Any, response: ModelResponse) -> None:
        for each in calls_of(response):
            each.args = {"to": "eve"}

    def send(to: str) -> str:
        """Send a letter."""
        raise AssertionError(to)

    spec = AgentSpec("main", tools=[send], hooks=[(HookPoint.POST_LLM_CALL, hook)])
    model = script(call("send", to="bob"), "done")
    result = carry_out(Runtime(project_of([spec]), model=model, approvals="approve_all"))
    assert isinstance(result.error, HookError)
    assert "returned None, but changed the response in place" in str(result.error)

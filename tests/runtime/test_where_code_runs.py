"""A plain function never holds up the event loop, whatever it is for; hooks and subscribers are meant to be short."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import AgentSpec, ApprovalDecision, run, tool


def calls_once(name: str, **arguments: Any) -> FunctionModel:
    """A model that calls one tool, and then answers."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, arguments)])

    return FunctionModel(answer)


@tool(approval="ask")
def pay() -> str:
    """Pay."""
    return "paid"


def asker(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    def approve(request: object) -> ApprovalDecision:
        blocks()
        return ApprovalDecision("once")

    return AgentSpec("payer", tools=[pay], model=calls_once("pay")), {"approvals": approve}


def questioner(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    def answer(question: object) -> str:
        blocks()
        return "blue"

    return AgentSpec("curious", toolsets=["ask_user"], model=calls_once("ask_user", question="Which?")), {
        "ask_user": answer
    }


def instructed(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    def instructions() -> str:
        blocks()
        return "Answer."

    return AgentSpec("taught", instructions=instructions, model=calls_once("none")), {}


def instructed_with_context(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    def instructions(ctx: RunContext[Any]) -> str:
        blocks()
        return "Answer."

    return AgentSpec("taught", instructions=instructions, model=calls_once("none")), {}


def guarded(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    return AgentSpec("guarded", input_guards=[lambda input: blocks()], model=calls_once("none")), {}


def provided(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    return AgentSpec("provided", context_providers=[lambda ctx: blocks()], model=calls_once("none")), {}


def using(blocks: Callable[[], None]) -> tuple[AgentSpec, dict[str, Any]]:
    @tool(approval="allow")
    def wait() -> str:
        """Wait."""
        blocks()
        return "waited"

    return AgentSpec("user", tools=[wait], model=calls_once("wait")), {}


@pytest.mark.parametrize(
    "kind", [asker, questioner, instructed, instructed_with_context, guarded, provided, using], ids=lambda f: f.__name__
)
def test_a_run_can_be_cancelled_while_a_plain_function_blocks(kind: Callable[..., Any]) -> None:
    entered, released, returned = threading.Event(), threading.Event(), threading.Event()

    def blocks() -> None:
        entered.set()
        released.wait(30)
        returned.set()

    async def main() -> None:
        spec, options = kind(blocks)
        running = asyncio.ensure_future(run(spec, "Go", **options))
        assert await asyncio.to_thread(entered.wait, 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    try:
        asyncio.run(main())
        assert not returned.is_set()
    finally:
        released.set()


@pytest.mark.parametrize("kind", [asker, questioner, instructed, instructed_with_context], ids=lambda f: f.__name__)
def test_a_plain_function_is_called_in_a_worker_thread(kind: Callable[..., Any]) -> None:
    threads: list[threading.Thread] = []
    spec, options = kind(lambda: threads.append(threading.current_thread()))

    run.sync(spec, "Go", **options)

    assert threads
    assert threading.main_thread() not in threads


class Approver:
    """A callable object, whose call is async."""

    async def __call__(self, request: object) -> ApprovalDecision:
        assert threading.current_thread() is threading.main_thread()
        return ApprovalDecision("once")


async def approve_later(request: object) -> ApprovalDecision:
    return await Approver()(request)


@pytest.mark.parametrize(
    "approve", [Approver(), approve_later, lambda request: approve_later(request)], ids=["object", "function", "lambda"]
)
def test_an_approval_function_that_is_async_in_any_way_is_awaited_in_the_event_loop(approve: Any) -> None:
    result = run.sync(AgentSpec("payer", tools=[pay], model=calls_once("pay")), "Go", approvals=approve)

    assert result.status == "completed"
    assert [record.tool for record in result.approvals] == ["pay"]

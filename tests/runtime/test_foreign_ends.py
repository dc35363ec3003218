"""Exceptions that a project's code raises to end something else.

A `KeyboardInterrupt` interrupts the run, which keeps its whole record; a `CancelledError` that no
cancellation caused is an ordinary failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from llm_do import CallContext, HookPoint, Project, PromptInput, RunInterruptedError, Runtime
from llm_do.flows import FlowSpec
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry
from llm_do.threads import memory_store
from tests.support.history import results_of, strict
from tests.support.runs import EMPTY, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def raising(kind: type[BaseException]) -> Callable[..., Any]:
    def boom(*_: Any, **__: Any) -> Any:
        """Raise."""
        raise kind

    return boom


def tool_of(kind: type[BaseException]) -> Callable[[], str]:
    def boom() -> str:
        """Raise."""
        raise kind

    return boom


def calling(name: str, kind: type[BaseException], turns: Any = None) -> Any:
    async def boom() -> str:
        """Raise."""
        raise kind

    return agent(name, turns or script([call("boom")], "fin"), tools=[boom])


def gathered(kind: type[BaseException]) -> Runtime:
    async def main(input: Any, ctx: Any) -> list[str]:
        return await asyncio.gather(ctx.call("helper", "a"))

    return runtime_of([calling("helper", kind)], main)


def called_by_name(kind: type[BaseException]) -> Runtime:
    async def main(input: Any, ctx: Any) -> list[str]:
        return await asyncio.gather(ctx.call("boom", {}))

    return runtime_of([], main, tools={"boom": tool_of(kind)})


def flow(kind: type[BaseException]) -> Runtime:
    async def step(input: PromptInput, ctx: CallContext) -> str:
        raise kind

    names = {
        "step": Registered("step", "tool", step),
        "all": Registered("all", "flow", FlowSpec("all", agents=("step",))),
    }
    return Runtime(Project(EMPTY, EntrySpec("flow", "all"), Registry(names)))


def approved(kind: type[BaseException]) -> Runtime:
    return runtime_of([calling("main", ValueError)], approvals=raising(kind))


TOOLS: dict[str, Callable[[type[BaseException]], Runtime]] = {
    "async": lambda kind: runtime_of([calling("main", kind)]),
    "sync": lambda kind: runtime_of([agent("main", script([call("boom")], "fin"), tools=[tool_of(kind)])]),
    "side by side": lambda kind: runtime_of([calling("main", kind, script([call("boom"), call("boom")], "fin"))]),
    "nested": lambda kind: runtime_of(
        [agent("main", script([call("inner", input="a")], "fin"), toolsets=[calling("inner", kind)])]
    ),
}
OTHERS: dict[str, Callable[[type[BaseException]], Runtime]] = {
    "hook": lambda kind: runtime_of([agent("main", script("fin"), hooks=[(HookPoint.PRE_LLM_CALL, raising(kind))])]),
    "instructions": lambda kind: runtime_of([agent("main", script("fin"), instructions=raising(kind))]),
    "factory": lambda kind: runtime_of([agent("main", script("fin"), toolsets=[raising(kind)])]),
    "entry": lambda kind: runtime_of([], raising(kind)),
    "function called by name": called_by_name,
    "step of a flow": flow,
}
LENIENT: dict[str, Callable[[type[BaseException]], Runtime]] = {
    "context provider": lambda kind: runtime_of([agent("main", script("fin"), context_providers=[raising(kind)])]),
    "approval callback": approved,
    "call in a task of its own": gathered,
}
ALL = {**TOOLS, **OTHERS, **LENIENT}


@each_row("where", ALL)
def test_a_keyboard_interrupt_in_the_projects_code_interrupts_the_run(where: str) -> None:
    runtime = ALL[where](KeyboardInterrupt)
    recorded = heard(runtime)
    result = carry_out(runtime)

    assert (result.status, result.exit_code) == ("interrupted", 130)
    assert isinstance(result.error, RunInterruptedError)
    assert isinstance(result.error.__cause__, KeyboardInterrupt)
    assert result.errors[-1].message == "the run was interrupted: its code raised KeyboardInterrupt"
    assert recorded.types[-1] == "run_failed"
    assert [event.seq for event in recorded.events] == list(range(len(recorded.events)))
    strict(result.messages)


@pytest.mark.parametrize("where", TOOLS)
def test_the_conversation_up_to_the_interrupt_is_kept(where: str) -> None:
    result = carry_out(TOOLS[where](KeyboardInterrupt))

    assert results_of(result.messages)
    assert {outcome for _, outcome, _ in results_of(result.messages)} == {"interrupted"}


def test_a_thread_keeps_the_conversation_too() -> None:
    store = memory_store()

    async def both() -> list[Any]:
        interrupted = runtime_of([calling("main", KeyboardInterrupt)], options={"store": store})
        await interrupted.execute("go", thread_id="t")
        again = runtime_of([agent("main", script("fin"))], options={"store": store})
        return (await again.execute("on", thread_id="t")).messages

    messages = asyncio.run(both())
    strict(messages)
    assert [outcome for _, outcome, _ in results_of(messages)] == ["interrupted"]


@each_row("where", OTHERS)
def test_a_foreign_cancelled_error_fails_what_raised_it(where: str) -> None:
    result = carry_out(OTHERS[where](asyncio.CancelledError))

    assert result.status == "failed"
    assert "CancelledError" in str(result.error)


@each_row("where", [*TOOLS, "context provider", "approval callback"])
def test_a_foreign_cancelled_error_is_raised_like_any_other_failure(where: str) -> None:
    result = carry_out(ALL[where](asyncio.CancelledError))

    # A callback that fails has asked nobody, so the call was denied for lack of a person.
    status = "denied" if where == "approval callback" else "completed"
    assert (result.status, result.output) == (status, "fin")


def test_a_custom_entry_may_raise_it_too() -> None:
    class Mine:
        name = "mine"
        input_model = PromptInput

        async def run(self, input: Any, ctx: Any) -> Any:
            raise asyncio.CancelledError

    result = carry_out(runtime_of([], raising(ValueError)), entry=Mine())
    assert (result.status, str(result.error)) == ("failed", "mine raised CancelledError")

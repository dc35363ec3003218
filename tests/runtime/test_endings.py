"""Whatever ends a run ends it, even if the project's code catches the exception; the caller gets a typed error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import RunContext

from llm_do import (
    AbortedError,
    CallContext,
    DepthLimitError,
    HookPoint,
    PermissionDeniedError,
    PromptInput,
    RunError,
    RunInterruptedError,
    Runtime,
    StepLimitError,
    ToolFailedError,
)
from tests.support.history import strict
from tests.support.runs import Answers, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script


class HookError(Exception):
    """Raised by the hooks."""


def broken() -> str:
    """Break."""
    raise OSError("broken")


def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def worker(kind: str) -> Any:
    """An agent that ends the whole run."""
    if kind == "hook":

        def hook(**data: Any) -> None:
            raise HookError("no further")

        return agent("worker", script("never"), hooks=[(HookPoint.PRE_LLM_CALL, hook)])
    tool = broken if kind == "tool" else send
    return agent("worker", script([call(tool.__name__, {} if kind == "tool" else {"to": "ann"})], "x"), tools=[tool])


OPTIONS: dict[str, dict[str, Any]] = {
    "hook": {},
    "abort": {"approvals": Answers(["abort"])},
    "denial": {"approvals": "reject_all", "return_permission_errors": False},
    "tool": {"on_tool_error": "raise"},
}
ENDS: dict[str, type[Exception]] = {
    "hook": HookError,
    "abort": AbortedError,
    "denial": PermissionDeniedError,
    "tool": ToolFailedError,
}
every_end = pytest.mark.parametrize("kind", list(ENDS))


def runtime_with(kind: str, *specs: Any, entry: Any = None) -> Runtime:
    return runtime_of([*specs, worker(kind)], entry, **OPTIONS[kind])


def heard_in(runtime: Runtime) -> tuple[Any, list[str]]:
    ear = heard(runtime)
    return carry_out(runtime), ear.types


# -- errors that end a run can't be swallowed

GOING_ON: dict[str, Callable[[CallContext], Awaitable[Any]]] = {}


def going_on(function: Callable[[CallContext], Awaitable[Any]]) -> Callable[[CallContext], Awaitable[Any]]:
    GOING_ON[function.__name__] = function
    return function


@going_on
async def catches_every_exception(ctx: CallContext) -> str:
    try:
        return await ctx.call("worker", "x")
    except Exception:  # noqa: BLE001 (the code under test)
        return "swallowed"


@going_on
async def catches_everything(ctx: CallContext) -> str:
    try:
        return await ctx.call_agent("worker", "x")
    except BaseException:  # noqa: BLE001 (the code under test)
        return "swallowed"


@going_on
async def gathers_exceptions(ctx: CallContext) -> str:
    return str(await asyncio.gather(ctx.call("worker", "x"), return_exceptions=True))


@going_on
async def raises_another(ctx: CallContext) -> str:
    try:
        return await ctx.call("worker", "x")
    except BaseException as error:
        raise KeyError("another") from error


@every_end
@pytest.mark.parametrize("code", list(GOING_ON))
def test_an_entry_cannot_continue_after_the_run_has_ended(kind: str, code: str) -> None:
    async def main(input: PromptInput, ctx: CallContext) -> Any:
        return await GOING_ON[code](ctx)

    result, types = heard_in(runtime_with(kind, entry=main))

    assert type(result.error) is ENDS[kind]
    assert result.status == "failed"
    assert result.errors[0].type == ENDS[kind].__name__
    assert [record.error.type for record in result.calls] == [ENDS[kind].__name__]
    assert types[-1] == "run_failed"


@pytest.mark.sample(5)
@every_end
@pytest.mark.parametrize("code", list(GOING_ON))
def test_after_a_run_has_ended_a_tool_cannot_continue_and_its_model_gets_no_request(kind: str, code: str) -> None:
    async def delegate(ctx: RunContext[CallContext]) -> str:
        """Delegate."""
        return str(await GOING_ON[code](ctx.deps))

    model = script([call("delegate")], "never sent")
    main = agent("main", model, tools=[delegate])
    runtime = runtime_of([main, worker(kind)], options={"allow": ["delegate"]}, **OPTIONS[kind])
    result = carry_out(runtime)

    assert type(result.error) is ENDS[kind]
    assert len(model.asked) == 1
    strict(result.messages)


@every_end
def test_code_that_swallows_the_end_of_a_run_can_call_nothing_more(kind: str) -> None:
    other = agent("other", script("other"))

    async def main(input: PromptInput, ctx: CallContext) -> str:
        with suppress(BaseException):
            await ctx.call("worker", "x")
        with suppress(BaseException):
            await ctx.call("other", "x")
        return "done"

    runtime = runtime_with(kind, other, entry=main)
    result = carry_out(runtime)

    assert type(result.error) is ENDS[kind]
    assert [record.path for record in result.calls] == ["main/worker"]
    assert other.model.asked == []


def test_a_hook_in_one_of_two_parallel_calls_ends_the_other() -> None:
    ended: list[str] = []

    async def waits() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")
        return "never"

    main = agent("main", script([call("waits"), call("worker", input="x")], "never"), tools=[waits])
    bad = worker("hook")
    main.toolsets = (bad,)
    result = carry_out(runtime_of([main, bad]))

    assert type(result.error) is HookError
    assert ended == ["waits"]
    strict(result.messages)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"max_steps": 1}, StepLimitError), ({"max_depth": 0}, DepthLimitError)],
    ids=["steps", "depth"],
)
def test_a_caller_can_handle_its_callees_own_limit(options: dict[str, Any], error: type[Exception]) -> None:
    async def main(input: PromptInput, ctx: CallContext) -> str:
        try:
            return await ctx.call("worker", "x")
        except error as limit:
            return f"went on after {type(limit).__name__}"

    spec = agent("worker", script([call("send", to="a")], [call("send", to="b")], "x"), tools=[send])
    result = carry_out(runtime_of([spec], main, **options))

    assert (result.status, result.output) == ("completed", f"went on after {error.__name__}")


# -- interruption


async def interrupted(start: Callable[[Runtime], Awaitable[Any]]) -> tuple[Runtime, BaseException | None]:
    """Start a run, interrupt it at its tool call, and return its outcome."""
    at_work = asyncio.Event()

    async def waits() -> str:
        """Wait."""
        at_work.set()
        await asyncio.Event().wait()
        return "never"

    runtime = runtime_of([agent("main", script([call("waits")], "over"), tools=[waits])])
    task = asyncio.ensure_future(start(runtime))
    await at_work.wait()
    runtime.interrupt()
    await asyncio.wait([task])
    return runtime, asyncio.CancelledError() if task.cancelled() else task.exception()


async def streamed(runtime: Runtime) -> None:
    async for _ in runtime.stream("go"):
        pass


@pytest.mark.parametrize("start", [lambda runtime: runtime.run("go"), streamed], ids=["run", "stream"])
def test_an_interrupted_run_raises_a_typed_error_that_can_be_continued_from(start: Any) -> None:
    async def scenario() -> None:
        runtime, error = await interrupted(start)

        assert isinstance(error, RunInterruptedError)
        assert isinstance(error, RunError)
        assert (error.status, error.exit_code) == ("interrupted", 130)
        strict(error.messages)
        runtime.project.registry["main"].value.model = script("continued")
        assert (await runtime.run("continue", messages=error.messages)).output == "continued"

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_blocking_run_can_be_interrupted_from_another_thread() -> None:
    def waits() -> str:
        """Wait."""
        threading.Thread(target=runtime.interrupt).start()
        threading.Event().wait(5)
        return "late"

    runtime = runtime_of([agent("main", script([call("waits")], "over"), tools=[waits])])

    with pytest.raises(RunInterruptedError, match="the run was interrupted"):
        runtime.run_sync("go")
    assert runtime.running == set()


def test_an_entry_that_cancels_itself_is_an_interrupted_run() -> None:
    async def main(input: PromptInput, ctx: CallContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    result = carry_out(runtime_of(entry=main))

    assert isinstance(result.error, RunInterruptedError)
    assert result.errors[-1].to_dict() == {
        "type": "RunInterruptedError",
        "message": "the run was interrupted",
        "agent_path": "main",
    }


def test_cancelling_the_caller_raises_cancelled_error() -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        async def main(input: PromptInput, ctx: CallContext) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(runtime_of(entry=main).run("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(scenario(), 30))


# -- denials


@pytest.mark.parametrize(("approvals", "status", "code"), [("prompt", "denied", 4), ("reject_all", "failed", 1)])
def test_a_denial_that_ends_the_run_says_why_on_the_error_too(approvals: str, status: str, code: int) -> None:
    main = agent("main", script([call("worker", input="x")], "never"), toolsets=[worker("denial")])
    runtime = runtime_of([main, worker("denial")], approvals=approvals, return_permission_errors=False)

    with pytest.raises(PermissionDeniedError) as raised:
        runtime.run_sync("go")
    result = carry_out(runtime)

    assert (raised.value.status, raised.value.exit_code) == (status, code)
    assert (result.status, result.exit_code) == (status, code)
    assert [record.status for record in result.calls] == [status]
    assert PermissionDeniedError("it").status == "failed"

"""Hooks: seven points, each called once per occurrence; an exception in a hook ends the run at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import CallContext, HookError, HookPoint, Runtime, RuntimeConfig, ToolError
from tests.support.history import strict
from tests.support.openai_server import serve
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import sampled

CALLED: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _nothing_called() -> None:
    CALLED.clear()


def recording(name: str) -> list[tuple[Any, Any]]:
    """A hook for every point that records the agent, the point and its other arguments."""

    def hook(point: HookPoint) -> Any:
        def note(*, agent: Any, **data: Any) -> None:
            assert agent.name == name
            CALLED.append((name, f"{point.value}({', '.join(sorted(data))})"))

        async def anote(*, agent: Any, **data: Any) -> None:
            await asyncio.sleep(0)
            note(agent=agent, **data)

        return anote if point in (HookPoint.START, HookPoint.POST_TOOL_CALL) else note

    return [(point, hook(point)) for point in HookPoint]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def fail() -> str:
    """Fail."""
    raise ToolError("no")


def project() -> list[Any]:
    inner = agent("inner", script([call("add", a=1, b=2)], "in"), tools=[add], hooks=recording("inner"))
    turns = (
        [call("add", a=1, b=1), call("inner", input="x")],
        [call("fail"), call("nope"), call("add", a="x", b=1)],
        "fin",
    )
    return [agent("main", script(*turns), tools=[add, fail], toolsets=[inner], hooks=recording("main")), inner]


MAIN = [
    "start()",
    "pre_llm_call(messages)",
    "post_llm_call(response)",
    "pre_tool_call(arguments, tool_name)",
    "pre_tool_call(arguments, tool_name)",
    "post_tool_call(result, tool_name)",
    "post_tool_call(result, tool_name)",
    "pre_llm_call(messages)",
    "post_llm_call(response)",
    "pre_tool_call(arguments, tool_name)",
    "post_tool_call(result, tool_name)",
    "pre_llm_call(messages)",
    "post_llm_call(response)",
    "finished()",
]
INNER = [
    "start()",
    "pre_llm_call(messages)",
    "post_llm_call(response)",
    "pre_tool_call(arguments, tool_name)",
    "post_tool_call(result, tool_name)",
    "pre_llm_call(messages)",
    "post_llm_call(response)",
    "finished()",
]


async def streamed(runtime: Runtime) -> None:
    async for _ in runtime.stream("go"):
        pass


@pytest.mark.parametrize("how", ["run", "run_sync", "stream"])
def test_every_point_is_called_once_per_occurrence(how: str) -> None:
    runtime = runtime_of(project())
    if how == "run":
        asyncio.run(runtime.run("go"))
    elif how == "run_sync":
        runtime.run_sync("go")
    else:
        asyncio.run(streamed(runtime))

    assert [point for name, point in CALLED if name == "main"] == MAIN
    assert [point for name, point in CALLED if name == "inner"] == INNER


def test_hooks_of_a_point_run_sequentially_in_declared_order() -> None:
    order: list[str] = []

    async def slow(agent: Any) -> None:
        order.append("slow begins")
        await asyncio.sleep(0.001)
        order.append("slow ends")

    hooks = [
        (HookPoint.START, slow),
        ("start", lambda agent: order.append("quick")),
        ("finished", lambda agent: order.append("end")),
    ]
    carry_out(runtime_of([agent("main", script("x"), hooks=hooks)]))

    assert order == ["slow begins", "slow ends", "quick", "end"]


def test_hooks_receive_their_documented_arguments() -> None:
    seen: dict[str, Any] = {}

    def keep(name: str) -> Any:
        def look(**data: Any) -> None:
            seen.setdefault(name, data)

        return look

    spec = agent(
        "main",
        script(call("add", a=1, b=2), "fin"),
        tools=[add],
        hooks=[(point, keep(point.value)) for point in HookPoint],
    )
    carry_out(runtime_of([spec]))

    assert all(data["agent"] is spec for data in seen.values())
    assert seen["pre_llm_call"]["messages"][0].kind == "request"
    assert seen["post_llm_call"]["response"].kind == "response"
    assert (seen["pre_tool_call"]["tool_name"], seen["pre_tool_call"]["arguments"]) == ("add", {"a": 1, "b": 2})
    assert seen["post_tool_call"]["result"] == 3
    assert "error" not in seen


def test_a_retried_request_calls_its_hooks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serve({"m": [{"status": 503, "times": 2}, {"text": "x"}]}) as (url, log):
        spec = agent("main", "openai-chat:m", model_settings={"base_url": url, "timeout": 5}, hooks=recording("main"))
        declared = project_of([spec])
        result = carry_out(Runtime(declared, config=RuntimeConfig.of(declared, retry_delay=0.0)))

    assert result.output == "x"
    assert len(log) == 3
    assert [point for _, point in CALLED] == [
        "start()",
        "pre_llm_call(messages)",
        "post_llm_call(response)",
        "finished()",
    ]


def test_denied_and_refused_calls_fire_no_post_hook() -> None:
    spec = agent(
        "main",
        script([call("add", a=1, b=1), call("nope"), call("add", "[")], "fin"),
        tools=[add],
        hooks=recording("main"),
    )
    carry_out(runtime_of([spec], approvals=Answers(["deny"])))

    points = [point.partition("(")[0] for _, point in CALLED]
    assert points.count("pre_tool_call") == 1
    assert "post_tool_call" not in points


class OwnError(Exception):
    """A project-defined exception."""


def breaking(point: HookPoint) -> tuple[Any, OwnError, list[int]]:
    error, calls = OwnError(f"at {point.value}"), []

    def broken(**data: Any) -> None:
        calls.append(1)
        raise error

    return broken, error, calls


WITHOUT_ERROR = [point for point in HookPoint if point is not HookPoint.ERROR]


@pytest.mark.sample(4)
@pytest.mark.parametrize("point", WITHOUT_ERROR)
@pytest.mark.parametrize("depth", sampled([3, 1, 2]))
@pytest.mark.parametrize("how", ["run", "stream"])
def test_a_hooks_exception_propagates_unchanged_from_any_depth(point: HookPoint, depth: int, how: str) -> None:
    broken, error, calls = breaking(point)
    deepest = agent(f"a{depth}", script([call("add", a=1, b=1)], "x"), tools=[add], hooks=[(point, broken)])
    specs = [deepest]
    for level in range(depth - 1, 0, -1):
        specs.insert(
            0,
            agent(
                f"a{level}",
                script([call(specs[0].name, input="x"), call("add", a=1, b=1)], "x"),
                tools=[add],
                toolsets=[specs[0]],
            ),
        )
    runtime = runtime_of(specs)
    ear = heard(runtime)

    with pytest.raises(OwnError) as raised:
        asyncio.run(runtime.run("go") if how == "run" else streamed(runtime))

    assert raised.value is error
    assert calls == [1]
    assert ear.types[-1] == "run_failed"
    assert ear.events[-1].error["type"] == "OwnError"
    assert len(ear.of("tool_call")) == len(ear.of("tool_result"))
    assert len(ear.of("call_started")) == len(ear.of("call_finished"))
    result = carry_out(runtime)
    assert result.status == "failed"
    strict(result.messages)
    assert [record.type for record in result.errors] == ["OwnError"]


def test_the_error_hook_receives_failures_and_may_fail_itself() -> None:
    seen: list[BaseException] = []
    carry_out(
        runtime_of([agent("main", script(ValueError("x")), hooks=[("error", lambda agent, error: seen.append(error))])])
    )
    assert [type(error).__name__ for error in seen] == ["ProviderError"]

    broken, error, calls = breaking(HookPoint.ERROR)
    result = carry_out(runtime_of([agent("main", script(ValueError("x")), hooks=[("error", broken)])]))
    assert result.error is error
    assert calls == [1]


def test_a_childs_error_hook_runs_even_if_its_parent_survives() -> None:
    seen: list[str] = []
    inner = agent(
        "inner", script(ValueError("x")), hooks=[("error", lambda agent, error: seen.append(error.agent_path))]
    )
    result = carry_out(runtime_of([agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner]), inner]))

    assert result.output == "fin"
    assert seen == ["main/inner"]


def test_a_hooks_exception_passes_through_an_entry_function() -> None:
    broken, error, _ = breaking(HookPoint.START)
    inner = agent("inner", script("x"), hooks=[("start", broken)])

    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("inner", "x")

    result = carry_out(runtime_of([inner], main))
    assert result.error is error


def test_an_unknown_hook_point_is_an_error() -> None:
    result = carry_out(runtime_of([agent("main", script("x"), hooks=[("begin", print)])]))

    assert result.status == "failed"
    assert "begin" in str(result.error)


def test_a_hooks_exception_names_the_hook_and_its_location() -> None:
    def keep_out(agent: Any, tool_name: str, arguments: Any) -> None:
        raise ValueError("no entry")

    hooks = [(HookPoint.PRE_TOOL_CALL, keep_out)]
    main = agent("main", script([call("add", a=1, b=2)], "end"), tools=[add], hooks=hooks)

    error = carry_out(runtime_of([main])).error

    assert isinstance(error, ValueError)
    (note,) = error.__notes__
    line = keep_out.__code__.co_firstlineno + 1
    assert note == f"raised by the hook keep_out at pre_tool_call (test_run_hooks.py:{line})"


def test_a_hook_that_awaits_a_cancelled_task_fails_and_does_not_interrupt_the_run() -> None:
    async def waits(agent: Any) -> None:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone

    result = carry_out(runtime_of([agent("main", script("x"), hooks=[("start", waits)])]))

    assert isinstance(result.error, HookError)
    assert result.status == "failed"
    assert "the hook waits at start raised CancelledError" in result.error.message


def test_a_context_provider_that_awaits_a_cancelled_task_is_skipped() -> None:
    async def waits(ctx: CallContext) -> str:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        return await gone

    runtime = runtime_of([agent("main", script("x"), context_providers=[waits])])
    ear = heard(runtime, "warning")

    assert carry_out(runtime).output == "x"
    (event,) = ear.events
    line = waits.__code__.co_firstlineno + 3
    assert event.message.startswith("the context provider waits failed: CancelledError (")
    assert event.message.endswith(f"test_run_hooks.py:{line})")

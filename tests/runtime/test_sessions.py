"""A runtime as a session: concurrent runs, loops and threads, and agents built once."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool as PydanticTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset

from llm_do import AgentSpec, CallContext, EntryError, Project, ProviderError, Runtime, UsageError, run
from llm_do.runtime.session.run_options import EntryOptions, RunOptions, RuntimeOptions
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def _mul() -> Any:
    def mul(a: int, b: int) -> int:
        return a * b

    return mul


# -- many at once


@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_concurrent_runs_are_isolated(runs: int) -> None:
    async def tag(ctx: RunContext[CallContext], text: str) -> str:
        return f"{text} {ctx.deps.run_id} {ctx.deps.user_id}"

    def turn(messages: Any, info: Any) -> Any:
        results = results_of(messages)
        return results[0][2] if results else [call("tag", text=str(messages[0].parts[-1].content))]

    inner = agent("inner", script(turn), tools=[tag])
    main = agent(
        "main",
        script(
            lambda messages, info: (
                results_of(messages)[0][2]
                if results_of(messages)
                else [call("inner", input=messages[0].parts[-1].content)]
            )
        ),
        toolsets=[inner],
    )
    runtime = runtime_of([main, inner])
    ear = heard(runtime)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(runtime.run(f"n{n}", user_id=f"u{n}") for n in range(runs)))

    results = asyncio.run(all_of_them())

    for n, result in enumerate(results):
        assert result.output == f"n{n} {result.run_id} u{n}"
        assert (result.usage.requests, result.usage.tool_calls, len(result.calls), len(result.approvals)) == (
            4,
            2,
            1,
            1,
        )
        strict(result.messages)
    assert len({result.run_id for result in results}) == runs
    for result in results[::20]:
        own = [event.seq for event in ear.events if event.run_id == result.run_id]
        assert own == list(range(len(own)))
    assert runtime.usage.requests == 4 * runs


def test_concurrent_runs_have_separate_budgets_and_loop_detection() -> None:
    runtime = runtime_of(
        [agent("main", script(call("add", a=1, b=1), call("add", a=1, b=1), "fin"), tools=[add])],
        budget={"requests": 3},
    )

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(runtime.run("go") for _ in range(10)))

    assert [result.output for result in asyncio.run(all_of_them())] == ["fin"] * 10


# -- loops and threads


def test_run_sync_works_inside_a_running_loop() -> None:
    runtime = runtime_of([agent("main", script([call("add", a=1, b=2)], "fin"), tools=[add])])

    async def notebook() -> Any:
        return runtime.run_sync("go"), run.sync(runtime.project, "go", approvals="approve_all")

    first, second = asyncio.run(notebook())
    assert (first.output, second.output) == ("fin", "fin")
    assert runtime.run_sync("go").output == "fin"


def test_run_sync_raises_what_run_raises() -> None:
    runtime = runtime_of([agent("main", script(ValueError("x")))])

    async def inside() -> None:
        with pytest.raises(Exception, match="x") as inner:
            runtime.run_sync("go")
        with pytest.raises(Exception, match="x") as outer:
            await runtime.run("go")
        assert type(inner.value) is type(outer.value)

    asyncio.run(inside())


def test_one_runtime_can_be_used_from_many_threads() -> None:
    person = Answers(["once"])
    runtime = runtime_of([agent("main", script([call("add", a=1, b=2)], "fin"), tools=[add])], approvals=person)
    results: list[Any] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        results.append(runtime.run_sync("go"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert [result.output for result in results] == ["fin"] * 8
    assert runtime.usage.requests == 16
    assert len(person.asked) == 8


# -- one-liners


def test_one_liners_run_projects_specs_and_agents() -> None:
    spec = AgentSpec("main", model=script("from a spec"))
    project = project_of([agent("main", script("from a project"))])
    own = Agent(script([call("add", a=1, b=2)], "from an agent"), tools=[add], name="own")

    assert asyncio.run(run(spec, "x")).output == "from a spec"
    assert asyncio.run(run(project, "x")).output == "from a project"
    assert run.sync(own, "x", approvals="approve_all").output == "from an agent"


def test_a_path_is_linked_first(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\n---\nGreet.\n")

    for target in (tmp_path, str(tmp_path), tmp_path / "main.agent"):
        assert run.sync(target, "x", model=TestModel(custom_output_text="hello")).output == "hello"
    assert Project.load(tmp_path).entry.name == "main"


def test_a_stream_yields_events_and_a_result() -> None:
    async def watch() -> tuple[list[str], Any]:
        stream = run.stream(AgentSpec("main", model=script("hello there")), "x")
        return [event.type async for event in stream], stream.result

    types, result = asyncio.run(watch())
    assert types[0] == "run_started"
    assert types[-1] == "run_finished"
    assert "text" in types
    assert result.output == "hello there"


def test_a_stream_raises_what_run_raises_after_its_last_event() -> None:
    async def watch() -> list[str]:
        types: list[str] = []
        stream = run.stream(AgentSpec("main", model=script(ValueError("gone"))), "x")

        async def listen() -> None:
            async for event in stream:
                types.append(event.type)  # noqa: PERF401 (what came before the error is kept)

        with pytest.raises(ProviderError, match="gone"):
            await listen()
        assert stream.result is not None
        assert stream.result.status == "provider_failed"
        return types

    assert asyncio.run(watch())[-1] == "run_failed"


def test_one_liners_take_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    looping = AgentSpec("main", model=script(call("add", a=1, b=1)), tools=[add])
    limits = {"max_steps": 2, "loop_threshold": 0}
    with pytest.raises(Exception, match="all its 2 model requests"):
        run.sync(looping, "x", approvals="approve_all", **limits)
    with pytest.raises(Exception, match="2 times in a row"):
        run.sync(looping, "x", approvals="approve_all", loop_threshold=2)
    first = run.sync(AgentSpec("main", model=script("a")), "x", thread_id="t", user_id="u")
    assert first.thread_id == "t"
    second = run.sync(AgentSpec("main", model=script("b")), "y", messages=first.messages)
    assert len(second.messages) == 4
    third = run.sync(AgentSpec("main"), "z", provider=script("c"), execution_context=second.execution_context)
    assert (third.output, len(third.messages)) == ("c", 6)
    with pytest.raises(UsageError, match="provider"):
        run.sync(AgentSpec("main"), "x", provider=OpenAIProvider(api_key="k"))


@pytest.mark.parametrize("target", [None, 3, lambda: "x"], ids=["None", "number", "function"])
def test_an_invalid_target_is_rejected(target: Any) -> None:
    with pytest.raises(UsageError, match=r"cannot run a value of type (NoneType|int|function)"):
        run.sync(target, "x")


def test_an_unknown_option_suggests_the_closest() -> None:
    with pytest.raises(TypeError, match=r"run has no option 'max_step'; did you mean `max_steps`"):
        run.sync(AgentSpec("main", model="test"), "x", max_step=3)  # type: ignore[call-arg]
    project = Project.load("examples/greeter")
    with pytest.raises(TypeError, match=r"Runtime has no option 'approval'; did you mean `approvals`"):
        Runtime(project, approval="approve_all")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"a run has no option 'thread'; did you mean `thread_id`"):
        Runtime(project).run_sync("x", thread="t")  # type: ignore[call-arg]


def test_run_accepts_session_options_and_run_options() -> None:
    assert {*RuntimeOptions.__annotations__, *EntryOptions.__annotations__, "provider"} == set(
        RunOptions.__annotations__
    )
    allow = ["read_file"]
    result = run.sync("examples/greeter", "x", model="test", entry="main", allow=allow, max_depth=2, record=False)
    assert result.status == "completed"


def test_a_pydantic_ai_agents_tools_take_the_same_steps() -> None:
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    own = Agent(
        script([call("send", to="ann"), call("pay", n=1), call("nope")], "fin"),
        tools=[send, PydanticTool(_pay, name="pay", requires_approval=True)],
        instructions="Be kind.",
    )
    person = Answers(["once", "deny"])
    result = run.sync(own, "x", approvals=person)

    assert result.output == "fin"
    assert [request.tool_name for request in person.asked] == ["send", "pay"]
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied", "failed"]
    assert result.messages[0].instructions == "Be kind."
    strict(result.messages)


def _pay(n: int) -> str:
    return "paid"


# -- built once


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record every agent and tool that is built."""
    made: list[str] = []
    for kind in (Agent, PydanticTool):
        original = kind.__init__

        def recording(
            self: Any, *args: Any, _original: Any = original, _name: str = kind.__name__, **kwargs: Any
        ) -> None:
            made.append(_name)
            _original(self, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", recording)
    return made


def test_nothing_is_built_after_the_first_run(builds: list[str]) -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return [
            await ctx.call("lead", "x"),
            await ctx.call("add", {"a": 1, "b": 2}),
            await ctx.call("plus", {"a": 1, "b": 2}),
        ]

    inner = agent("inner", script([call("add", a=1, b=2)], "in"), tools=["add", add])
    inner.tools = ["add"]
    lead = agent("lead", script([call("inner", input="x")], "led"), toolsets=[inner], output_type=str)
    project = project_of([lead, inner], main, tools={"add": add, "plus": add})
    assert carry_out(Runtime(project, approvals="approve_all")).output == ["led", 3, 3]
    assert builds.count("Agent") == 2
    builds.clear()

    carry_out(Runtime(project, approvals="approve_all"))
    runtime = Runtime(project, approvals="approve_all")
    carry_out(runtime)
    carry_out(runtime)

    assert builds == []


def test_additions_to_a_declaration_apply_from_the_next_run(builds: list[str]) -> None:
    spec = agent("main", script([call("add", a=1, b=2), call("kit_mul", a=2, b=3)], "fin"))
    runtime = runtime_of([spec])
    assert [outcome for _, outcome, _ in results_of(carry_out(runtime).messages)] == ["failed", "failed"]

    spec.add_tool("add", add)
    spec.add_toolkit("kit", FunctionToolset([_mul()]))
    assert [text for _, _, text in results_of(carry_out(runtime).messages)] == ["3", "6"]

    builds.clear()
    carry_out(runtime)
    assert builds == []


@pytest.mark.parametrize("listed", [{"tools": [object()]}, {"output_type": object()}], ids=["tool", "output"])
def test_an_agent_that_cannot_be_built_is_named(listed: dict[str, Any]) -> None:
    result = carry_out(runtime_of([agent("main", script("x"), **listed)]))

    assert isinstance(result.error, EntryError)
    assert result.error.message.startswith("agent 'main' can't be built: ")
    assert result.error.agent_path == "main"


@pytest.mark.slow
def test_an_unused_project_is_garbage_collected() -> None:
    def tool() -> str:
        return "x"

    project = project_of([agent("main", script([call("tool")], "fin"), tools=[tool])])
    carry_out(Runtime(project, approvals="approve_all"))
    gone = [weakref.ref(project), weakref.ref(tool)]
    del project, tool
    # The worker thread that called the tool may still be about to let it go.
    deadline = time.monotonic() + 10
    while any(ref() is not None for ref in gone) and time.monotonic() < deadline:
        gc.collect()

    assert [ref() for ref in gone] == [None, None]

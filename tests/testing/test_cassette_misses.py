"""A miss ends the run at whatever depth, whatever its callers catch, and says so once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError

from llm_do import AgentSpec, CallContext, HookPoint, Project, RunResult, Runtime, register_model_factory
from llm_do.errors import CassetteMissError
from llm_do.flows import ParallelGroup, SerialGroup
from llm_do.runtime.record.redaction import redactor
from llm_do.testing.cassettes.cassette import Cassette, Recorded
from llm_do.testing.cassettes.files import recorder_for
from llm_do.testing.cassettes.masks import Masks
from llm_do.testing.cassettes.player import CassettePlayer
from llm_do.testing.cassettes.sources import Sources
from tests.flows.flow_runs import flow_project, saying
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

Make = Callable[[], Project]


def deep(**fields: Any) -> AgentSpec:
    return agent("deep", script("dug"), description="Digs.", **fields)


def of_function(main: Callable[..., Any]) -> Make:
    return lambda: project_of([deep()], entry=main)


async def catches_exceptions(input: Any, ctx: CallContext) -> Any:
    try:
        return await ctx.call("deep", "x")
    except Exception as error:  # noqa: BLE001 (that is what is tested)
        return f"caught {error}"


async def catches_everything(input: Any, ctx: CallContext) -> Any:
    try:
        return await ctx.call("deep", "x")
    except BaseException as error:  # noqa: BLE001 (that is what is tested)
        return f"caught {error}"


async def tries_again(input: Any, ctx: CallContext) -> Any:
    for _ in range(3):
        with suppress(BaseException):
            return await ctx.call("deep", "x")
    return "gave up"


async def gathers(input: Any, ctx: CallContext) -> Any:
    return str(await asyncio.gather(*(ctx.call("deep", text) for text in "ab"), return_exceptions=True))


async def groups(input: Any, ctx: CallContext) -> Any:
    with suppress(BaseExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.call("deep", "x"))
    return "done"


async def shields(input: Any, ctx: CallContext) -> Any:
    task = asyncio.ensure_future(ctx.call("deep", "x"))
    with suppress(BaseException):
        await asyncio.shield(task)
    return "done"


async def cleans_up(input: Any, ctx: CallContext) -> Any:
    try:
        await ctx.call("deep", "x")
    finally:
        return "done"  # noqa: B012 (that is what is tested)


def with_tool() -> Project:
    async def dig(ctx: RunContext[CallContext]) -> str:
        """Dig."""
        try:
            return str(await ctx.deps.call("deep", "x"))
        except BaseException:  # noqa: BLE001 (that is what is tested)
            return "nothing there"

    return project_of([agent("main", script(call("dig"), "done"), tools=[dig]), deep()])


def as_tool() -> Project:
    return project_of([agent("main", script(call("deep", input="x"), "done"), toolsets=["deep"]), deep()])


def beside_others() -> Project:
    calls = [call("deep", {"input": text}, text) for text in "abc"]
    return project_of([agent("main", script(calls, "done"), toolsets=["deep"]), deep()])


def three_down() -> Project:
    middle = agent("middle", script(call("deep", input="x"), "middle"), toolsets=["deep"], description="Middle.")
    top = agent("top", script(call("middle", input="x"), "top"), toolsets=["middle"])
    return project_of([top, middle, deep()])


def with_handoff() -> Project:
    return project_of(
        [agent("main", script(call("transfer_to_deep", reason="it digs"), "done"), handoffs=["deep"]), deep()]
    )


def with_hook() -> Project:
    def swallow(**_: Any) -> None:
        """Do as if nothing had happened."""

    hooks = [(HookPoint.ERROR, swallow), (HookPoint.FINISHED, swallow)]
    main = agent("main", script(call("deep", input="x"), "done"), toolsets=["deep"], hooks=hooks)
    return project_of([main, deep()])


def collecting() -> Project:
    group = ParallelGroup("all", [deep(), saying("other")], on_error="collect")
    return flow_project(group)  # type: ignore[arg-type]


def in_workflow() -> Project:
    return flow_project(SerialGroup("work", [saying("first"), deep(), saying("last")]))  # type: ignore[arg-type]


PLACES: dict[str, Make] = {
    **{each.__name__: of_function(each) for each in (
        catches_exceptions, catches_everything, tries_again, gathers, groups, shields, cleans_up,
    )},
    "a tool that catches it": with_tool,
    "an agent as a tool": as_tool,
    "three of them side by side": beside_others,
    "three calls down": three_down,
    "a handoff": with_handoff,
    "hooks that say nothing": with_hook,
    "on_error: collect": collecting,
    "a workflow": in_workflow,
}  # fmt: skip


def record(make: Make, **options: Any) -> Cassette:
    project = make()
    recorder = recorder_for(project)
    result = carry_out(Runtime(project, approvals="approve_all", transport=recorder), **options)
    assert result.status == "completed", result.error
    return recorder.cassette()


def replay(make: Make, cassette: Cassette, kept: Callable[[Recorded], bool], **options: Any) -> RunResult:
    """Replay the recordings that are kept."""
    project = make()
    rest = replace(cassette, exchanges=[each for each in cassette.exchanges if kept(each)])
    assert len(rest.exchanges) < len(cassette.exchanges)
    player = CassettePlayer(rest, Masks(project.root, redactor()), Sources(project), "llm-do again")
    return carry_out(Runtime(project, approvals="approve_all", transport=player), **options)


def check(result: RunResult) -> None:
    assert (result.status, result.exit_code) == ("provider_failed", 7), result.output
    assert isinstance(result.error, CassetteMissError)
    assert "llm-do again" in str(result.error.hint)
    assert [each.type for each in result.errors].count("CassetteMissError") == 1, result.errors


@pytest.mark.sample(5)
@pytest.mark.parametrize("place", PLACES)
def test_a_miss_ends_the_run_wherever_it_happens(place: str) -> None:
    make = PLACES[place]

    check(replay(make, record(make), lambda each: each.agent != "deep"))


def test_a_miss_is_not_sent_again_and_no_other_model_is_tried() -> None:
    lost = ModelHTTPError(503, "m", {"message": "overloaded"})
    register_model_factory("first", lambda _: script(lost, "from the first"))
    register_model_factory("second", lambda _: script("from the second"))

    def make() -> Project:
        return project_of([agent("main", ["first:x", "second:x"])], max_retries=1)

    cassette = record(make)
    result = replay(make, cassette, lambda each: each is cassette.exchanges[0])

    check(result)
    assert result.usage.requests == 1


def test_a_missing_summary_ends_the_run_although_a_failed_one_does_not() -> None:
    register_model_factory("summariser", lambda _: script("They looked."))

    def look(n: int) -> str:
        """Look."""
        return f"{n} word " * 200

    def make() -> Project:
        compaction = {"max_tokens": 900, "strategies": ["summarization"], "preserve_recent": 2}
        answers = iter([*(call("look", n=n) for n in range(3)), "done"])
        model = script(lambda messages, info: next(answers))
        spec = agent("main", model, tools=[look], compaction={**compaction, "summary_model": "summariser:x"})
        return project_of([spec])

    result = replay(make, record(make), lambda each: each.purpose != "summary")

    check(result)
    assert "the summary before request" in str(result.error)


def test_every_thread_that_runs_it_is_told() -> None:
    project = as_tool()
    player = CassettePlayer(Cassette(), Masks(project.root, redactor()), Sources(project), "llm-do again")
    runtime = Runtime(project, approvals="approve_all", transport=player)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            runtime.run_sync("go")
        except BaseException as error:  # noqa: BLE001 (whatever it is)
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [type(error) for error in raised] == [CassetteMissError] * 3
    assert len(player.misses) == 3


def test_what_runs_beside_a_miss_is_cancelled_before_it_writes(tmp_path: Path) -> None:
    """What has been written by then stays, as after any other end of a run."""
    paths = [tmp_path / "early.txt", tmp_path / "late.txt"]

    async def write(late: bool) -> str:
        """Write."""
        paths[0].write_text("early")
        await asyncio.sleep(0.05 if recording else 60)
        paths[1].write_text("late")
        return "written"

    def make() -> Project:
        calls = [call("write", late=True), call("deep", input="x")]
        return project_of([agent("main", script(calls, "done"), tools=[write], toolsets=["deep"]), deep()])

    recording = True
    cassette = record(make)
    for path in paths:
        path.unlink()
    recording = False

    check(replay(make, cassette, lambda each: each.agent != "deep"))
    assert [path.exists() for path in paths] == [True, False]

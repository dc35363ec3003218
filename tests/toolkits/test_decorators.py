"""Decorators for tools work for async and synchronous ones, and remember for one run or one user's thread only."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from llm_do import ToolError, Toolkit, Update, cache_result, rate_limit, retry, timeout
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.toolkits.kits import play


class Flaky:
    """Fails so many times, then succeeds."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.left = times
        self.calls = 0
        self.error = error or ConnectionError("down")

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error
        return "up"


def both(decorator: Any, work: Any) -> list[Any]:
    """The decorated work as a synchronous tool and as an async one."""

    @decorator
    def sync_tool() -> Any:
        """Work in a thread."""
        return work()

    @decorator
    async def async_tool() -> Any:
        """Work in the loop."""
        await asyncio.sleep(0)
        return work()

    return [sync_tool, async_tool]


@pytest.mark.parametrize("index", [0, 1])
def test_a_retry_tries_again_and_gives_up_at_last(index: int) -> None:
    flaky = Flaky(2)
    played = play(call(name := both(retry(3), flaky)[index].__name__), "done", tools=[both(retry(3), flaky)[index]])
    assert (name, played.told, flaky.calls) == (played.ends[0][0], ["up"], 3)
    flaky = Flaky(9)
    played = play(call(name), "done", tools=[both(retry(3), flaky)[index]])
    assert (played.told, flaky.calls) == (["ConnectionError: down"], 3)


@pytest.mark.parametrize("index", [0, 1])
def test_a_retry_leaves_alone_what_was_said_on_purpose_or_is_not_named(index: int) -> None:
    for error, options in ((ToolError("no"), {}), (ValueError("no"), {"on": (KeyError, OSError)})):
        flaky = Flaky(1, error)
        played = play(call(("sync_tool", "async_tool")[index]), "done", tools=[both(retry(3, **options), flaky)[index]])
        assert (played.statuses, flaky.calls) == (["failed"], 1)


def test_a_retry_keeps_the_function_a_tool() -> None:
    kit = Toolkit("kit")

    @kit.tool(enables_states=["on"])
    @retry(2)
    def add(ctx, a: int, b: int = 2) -> Any:
        """Add."""
        return Update(a + b, sum=ctx.state.get("sum", 0) + a + b)

    played = play(call("add", a=1), "done", kits=[kit])
    assert played.schema("add")["required"] == ["a"]
    assert played.result.toolkits["kit"].context["sum"] == 3


@pytest.mark.parametrize("name", ["sync_tool", "async_tool"])
def test_a_timeout_ends_a_tool_in_a_thread_and_in_the_loop(name: str) -> None:
    never, ended = threading.Event(), threading.Event()

    @timeout(0.01)
    def sync_tool(ctx: Any = None) -> str:
        """Wait for ever."""
        never.wait()
        ended.set()
        return "late"

    @timeout(0.01)
    async def async_tool() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "late"

    kit = Toolkit("kit", context={"n": 1})
    kit.add_tool("sync_tool", sync_tool)
    kit.add_tool("async_tool", async_tool)
    played = play(call(name), "done", kits=[kit])
    never.set()
    assert played.told == [f"{name} timed out after 0.01 s"]
    assert played.statuses == ["failed"]
    if name == "sync_tool":
        assert ended.wait(5)


def test_a_tools_own_timeout_error_stays_its_own() -> None:
    def raises() -> str:
        raise TimeoutError("the server's")

    for made in both(timeout(60), raises):
        assert play(call(made.__name__), "done", tools=[made]).told == ["TimeoutError: the server's"]


def test_a_rate_limit_counts_per_run() -> None:
    tools = both(rate_limit(2, 3600), lambda: "ok")
    for made in tools:
        name = made.__name__
        runtime = runtime_of(
            [agent("main", script([call(name)], [call(name)], [call(name)], "done"), tools=[made], loop_threshold=0)]
        )
        for _ in range(2):
            told = [
                str(part.content)
                for message in carry_out(runtime).messages
                for part in message.parts
                if part.part_kind == "tool-return"
            ]
            assert told[:2] == ["ok", "ok"]
            assert f"{name} may be called 2 times in 3600 s; try again in" in told[2]


class Counted:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        return f"call {self.calls}"


def test_a_result_is_remembered_for_the_run_and_no_longer() -> None:
    for index in (0, 1):
        counted = Counted()
        made = both(cache_result(), counted)[index]
        turns = [call(made.__name__), call(made.__name__), "done"]
        runtime = runtime_of([agent("main", script(*turns), tools=[made])])
        first, second = carry_out(runtime), carry_out(runtime)
        assert counted.calls == 2
        assert [first.messages[index].parts[0].content for index in (2, 4)] == ["call 1", "call 1"]
        assert [second.messages[index].parts[0].content for index in (2, 4)] == ["call 2", "call 2"]


def test_a_result_is_remembered_for_one_users_thread() -> None:
    counted = Counted()
    (made, _) = both(cache_result(scope="thread"), counted)
    runtime = runtime_of([agent("main", script(call("sync_tool"), "done"), tools=[made])])
    runs = [("a", "t"), ("a", "t"), ("b", "t"), ("a", "u"), (None, None), (None, None)]
    said = [carry_out(runtime, user_id=user, thread_id=thread).messages[2].parts[0].content for user, thread in runs]
    assert said == ["call 1", "call 1", "call 2", "call 3", "call 4", "call 5"]


def test_other_arguments_another_context_and_failures_are_not_remembered() -> None:
    kit, calls = Toolkit("kit", context={"n": 0}), []

    @kit.tool
    @cache_result()
    def read(ctx, key: str, default: str = "none") -> Any:
        """Read."""
        calls.append(key)
        if key == "bad":
            return Update.failed("no such key")
        return f"{ctx.state.get(key, default)}"

    @kit.tool
    def bump(ctx) -> Any:
        """Bump."""
        return "bumped", {"n": ctx.state["n"] + 1}

    reads = [
        call("read", key="n"),
        call("read", key="n", default="none"),
        call("read", key="m"),
        call("bump"),
        call("read", key="n"),
    ]
    played = play(reads, [call("read", key="bad")], [call("read", key="bad")], "done", kits=[kit])
    assert played.told[:5] == ["0", "0", "none", "bumped", "1"]
    assert calls == ["n", "m", "n", "bad", "bad"]


def test_a_result_grows_old_and_the_oldest_go_first() -> None:
    counted = Counted()

    @cache_result(ttl=0)
    def stale() -> str:
        """Stale at once."""
        return counted()

    @cache_result(max_entries=1)
    def single(n: int) -> str:
        """One result only."""
        return counted()

    played = play(
        [call("stale")],
        [call("stale")],
        [call("single", n=1)],
        [call("single", n=2)],
        [call("single", n=1)],
        "done",
        tools=[stale, single],
    )
    assert played.told == ["call 1", "call 2", "call 3", "call 4", "call 5"]


def test_outside_of_any_run_nothing_is_remembered() -> None:
    counted = Counted()
    cached, _ = both(cache_result(), counted)
    limited, _ = both(rate_limit(1, 3600), counted)
    assert [cached(), cached(), limited(), limited()] == ["call 1", "call 2", "call 3", "call 4"]

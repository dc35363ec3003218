"""Decorators for tools work for async and synchronous ones, and remember for one run or one user's thread only."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed

from llm_do import ToolError, Toolkit, ToolkitError, Update, tool
from llm_do.runtime.tools.current_tool import CURRENT_TOOL
from llm_do.toolkits import cache_result, rate_limit, retry, timeout
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
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
    assert (name, played.outputs, flaky.calls) == (played.ends[0][0], ["up"], 3)
    flaky = Flaky(9)
    played = play(call(name), "done", tools=[both(retry(3), flaky)[index]])
    assert (played.outputs, flaky.calls) == (["ConnectionError: down"], 3)


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
    assert played.outputs == [f"{name} timed out after 0.01 s"]
    assert played.statuses == ["failed"]
    if name == "sync_tool":
        assert ended.wait(5)


def test_a_tools_own_timeout_error_stays_its_own() -> None:
    def raises() -> str:
        raise TimeoutError("the server's")

    for made in both(timeout(60), raises):
        assert play(call(made.__name__), "done", tools=[made]).outputs == ["TimeoutError: the server's"]


def test_a_rate_limit_counts_per_run() -> None:
    tools = both(rate_limit(2, 3600), lambda: "ok")
    for made in tools:
        name = made.__name__
        runtime = runtime_of(
            [agent("main", script([call(name)], [call(name)], [call(name)], "done"), tools=[made], loop_threshold=0)]
        )
        for _ in range(2):
            outputs = [
                str(part.content)
                for message in carry_out(runtime).messages
                for part in message.parts
                if part.part_kind == "tool-return"
            ]
            assert outputs[:2] == ["ok", "ok"]
            assert f"{name} may be called 2 times in 3600 s; try again in" in outputs[2]


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
    outputs = [carry_out(runtime, user_id=user, thread_id=thread).messages[2].parts[0].content for user, thread in runs]
    assert outputs == ["call 1", "call 1", "call 2", "call 3", "call 4", "call 5"]


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
    assert played.outputs[:5] == ["0", "0", "none", "bumped", "1"]
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
    assert played.outputs == ["call 1", "call 2", "call 3", "call 4", "call 5"]


def test_outside_of_any_run_nothing_is_remembered() -> None:
    counted = Counted()
    cached, _ = both(cache_result(), counted)
    limited, _ = both(rate_limit(1, 3600), counted)
    assert [cached(), cached(), limited(), limited()] == ["call 1", "call 2", "call 3", "call 4"]


@each_row(
    "make, message",
    [
        (lambda: retry(0), "`times` of retry is a whole number of at least 1, not 0"),
        (lambda: retry(delay=-1), "`delay` of retry"),
        (lambda: retry(factor=float("nan")), "`factor` of retry"),
        (lambda: retry(on=[OSError]), "`on` of retry is an exception class or a tuple of them"),  # type: ignore[arg-type]
        (lambda: timeout(0), "`seconds` of timeout is a number above 0, not 0"),
        (lambda: timeout(float("inf")), "`seconds` of timeout"),
        (lambda: rate_limit(0, 1), "`calls` of rate_limit is a whole number of at least 1, not 0"),
        (lambda: rate_limit(1, 0), "`per` of rate_limit"),
        (lambda: rate_limit(1, 1, scope="process"), "`scope` of rate_limit is 'run' or 'thread', not 'process'"),  # type: ignore[arg-type]
        (lambda: cache_result(scope="user"), "`scope` of cache_result is 'run' or 'thread'"),  # type: ignore[arg-type]
        (lambda: cache_result(max_entries=0), "`max_entries` of cache_result"),
        (lambda: cache_result(-1), "`ttl` of cache_result"),
        (lambda: retry(Counted), "`times` of retry"),  # type: ignore[arg-type]
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_where_it_stands(make: Any, message: str) -> None:
    with pytest.raises(ToolkitError, match=re.escape(message)):
        make()


def test_a_decorator_without_its_parentheses_says_so() -> None:
    with pytest.raises(ToolkitError) as caught:

        @cache_result  # type: ignore[arg-type]
        def read() -> str:
            return "read"

    assert caught.value.hint == "Write the decorator with parentheses."


@pytest.mark.parametrize("decorator", [retry(2), timeout(1), cache_result()])
def test_a_generator_is_refused_since_calling_it_does_nothing_yet(decorator: Any) -> None:
    def one_by_one() -> Any:
        yield 1

    async def later() -> Any:
        yield 1

    for function in (one_by_one, later, rate_limit(1, 3600)(one_by_one)):
        with pytest.raises(ToolkitError, match=f"can't be used on a generator: {function.__name__}"):
            decorator(function)


def test_an_iterator_is_not_remembered_since_it_can_be_read_once() -> None:
    @cache_result()
    def doubled(n: int) -> Any:
        """Double."""
        return (2 * each for each in range(n))

    played = play(call("doubled", n=3), call("doubled", n=3), "done", tools=[doubled])
    assert played.outputs == ["[0, 2, 4]", "[0, 2, 4]"]


@pytest.mark.parametrize("error", [ModelRetry("say it again"), ToolFailed("no"), ApprovalRequired()])
@pytest.mark.parametrize("index", [0, 1])
def test_a_retry_leaves_alone_what_pydantic_ai_has_words_for(index: int, error: Exception) -> None:
    flaky = Flaky(2, error)
    made = both(retry(3), flaky)[index]
    with pytest.raises(type(error)):
        asyncio.run(made()) if index else made()
    assert flaky.calls == 1
    named = both(retry(3, on=type(error)), flaky)[index]
    assert (asyncio.run(named()) if index else named()) == "up"


def test_two_limits_of_one_function_count_by_themselves() -> None:
    def ping() -> str:
        """Ping."""
        return "pong"

    kit = Toolkit("kit")
    kit.add_tool("seldom", rate_limit(1, 3600)(ping))
    kit.add_tool("often", rate_limit(3, 3600)(ping))
    played = play([call("often"), call("often"), call("seldom"), call("often")], "done", kits=[kit])
    assert played.outputs == ["pong"] * 4


def test_a_tool_under_a_timeout_of_its_own_learns_that_the_whole_call_was_given_up() -> None:
    """The tool waits for the flag, and the test for the tool: without the flag both would wait for ever."""
    noticed = threading.Event()

    @tool(timeout=0.05)
    @timeout(3600)
    def patient() -> str:
        """Wait until none waits."""
        given_up = CURRENT_TOOL.get()
        assert given_up is not None
        if given_up.wait(60) and given_up.is_set():
            noticed.set()
        return "late"

    played = play(call("patient"), "done", tools=[patient])
    assert played.statuses == ["timed_out"]
    assert noticed.wait(60)

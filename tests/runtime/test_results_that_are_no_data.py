"""What a project's code returns has to be data; anything else is an error that names the function and its line."""

from __future__ import annotations

import asyncio
import decimal
import pathlib
from collections.abc import Callable
from typing import Any

from llm_do import CallContext, EntryError, Project, Runtime
from llm_do.flows import FlowSpec
from llm_do.project.project import EntrySpec
from llm_do.project.registry import Registered, Registry
from tests.support.history import results_of
from tests.support.runs import EMPTY, Heard, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


class Bare:
    """An object without a text of its own."""


class Named:
    """An object with one."""

    def __str__(self) -> str:
        return "a named thing"


async def later() -> str:
    return "later"


NO_DATA: dict[str, tuple[Callable[[], Any], str]] = {
    "a coroutine": (later, "returned a coroutine of later that was not awaited"),
    "a future": (lambda: asyncio.get_running_loop().create_future(), "returned a Future that was not awaited"),
    "an object": (Bare, "returned an object of type Bare"),
    "object()": (object, "returned an object of type object"),
    "an object in a list": (lambda: [1, Bare()], "returned an object of type Bare"),
    "an object in a dict": (lambda: {"a": {"b": Bare()}}, "returned an object of type Bare"),
    "a function": (lambda: later, "returned the function later"),
    "a bound method": (lambda: Named().__str__, "returned the function __str__"),
}
DATA: dict[str, tuple[Any, Any]] = {
    "an object with a text": (Named(), "a named thing"),
    "a path": (pathlib.PurePosixPath("a/b"), "a/b"),
    "a number": (decimal.Decimal("1.5"), "1.5"),
    "text that looks like an object": ("<Bare object at 0x7f00>", "<Bare object at 0x7f00>"),
}


def ended(kind: str) -> tuple[Any, Heard, int]:
    """Run an entry function that returns a value of this kind."""
    make, _ = NO_DATA[kind]

    async def start(input: Any, ctx: Any) -> Any:
        return make()

    runtime = runtime_of([], start)
    ear = heard(runtime)
    return carry_out(runtime), ear, start.__code__.co_firstlineno


@each_row("kind", NO_DATA)
def test_an_entry_that_returns_no_data_is_named_with_its_line(kind: str) -> None:
    result, ear, line = ended(kind)

    assert (result.status, result.output) == ("failed", None)
    assert isinstance(result.error, EntryError)
    assert result.error.message == f"start {NO_DATA[kind][1]}"
    assert (pathlib.Path(str(result.error.file)).name, result.error.line) == (pathlib.Path(__file__).name, line)
    assert result.error.hint is not None
    assert ear.events[-1].error["line"] == line


def test_a_call_that_is_not_awaited_is_said_so() -> None:
    async def start(input: Any, ctx: Any) -> Any:
        return ctx.call("helper", "x")

    result = carry_out(runtime_of([agent("helper", script("x"))], start))

    assert result.error is not None
    assert str(result.error) == "start returned a coroutine of CallContext.call that was not awaited"
    assert result.error.hint == "Write `await` before the call."


def test_a_synchronous_entry_may_return_a_call() -> None:
    def start(input: Any, ctx: Any) -> Any:
        return ctx.call("helper", "x")

    assert carry_out(runtime_of([agent("helper", script("an answer"))], start)).output == "an answer"


@each_row("kind", DATA)
def test_whatever_has_a_text_of_its_own_is_data(kind: str) -> None:
    value, text = DATA[kind]

    async def start(input: Any, ctx: Any) -> Any:
        return value

    assert carry_out(runtime_of([], start)).to_dict()["output"] == text


@each_row("kind", [kind for kind in NO_DATA if kind != "a future"])
def test_a_tools_result_that_is_no_data_is_a_failed_result(kind: str) -> None:
    make, text = NO_DATA[kind]

    async def give() -> Any:
        """Give."""
        return make()

    runtime = runtime_of([agent("main", script(call("give"), "done"), tools=[give])])
    result = carry_out(runtime)

    assert [item[1:] for item in results_of(result.messages)] == [("failed", f"give {text}")]
    (record,) = result.errors
    assert (record.message, record.line) == (f"give {text}", give.__code__.co_firstlineno)
    assert result.status == "completed"


def test_a_step_that_returns_a_coroutine_is_named() -> None:
    async def step(input: Any, ctx: CallContext) -> Any:
        return later()

    names = {
        "step": Registered("step", "tool", step),
        "all": Registered("all", "flow", FlowSpec("all", agents=("step",))),
    }

    result = carry_out(Runtime(Project(EMPTY, EntrySpec("flow", "all"), Registry(names))))

    assert result.error is not None
    assert str(result.error) == "step returned a coroutine of later that was not awaited"
    assert result.errors[0].line == step.__code__.co_firstlineno


def test_code_may_pass_an_object_on_to_code() -> None:
    async def connect(input: Any, ctx: CallContext) -> Any:
        return Bare()

    async def start(input: Any, ctx: Any) -> Any:
        return type(await ctx.call("connect", "x")).__name__

    assert carry_out(runtime_of([], start, tools={"connect": connect})).output == "Bare"
